import { type SQL, sql } from 'drizzle-orm';
import { array, printedUuids } from '../arrays.ts';
import type { Database, Executor, Warehouse } from '../connect.ts';
import { isRefusal } from '../failures.ts';
import { halving } from '../halving.ts';
import { isVersioned, type RecordResource, resources, tableOf } from '../resources.ts';
import { connectionSites } from '../schema/utility.ts';
import { recordRead } from '../strangers.ts';
import { sitesOfCompanies } from '../write/companies.ts';
import { relatedSites, tellsSites } from '../write/connection-sites.ts';
import { type IntervalColumns, plainReadings, readingsAt } from '../write/interval-text.ts';
import { itemTexts, pageOfTexts } from '../write/item-texts.ts';
import { items, type RecordPage } from '../write/page.ts';
import { refusedId } from '../write/rejected-records.ts';
import { idOfRecord } from '../write/upsert.ts';

/** A record that the warehouse lacks, or holds otherwise than the service. */
export interface Difference {
  readonly id: string;
  readonly state: 'missing' | 'extra' | 'different';
  /** What differs in it, for those that both have: JSON as text, null where a side has none. */
  readonly fields?: readonly DifferentField[];
}

export interface DifferentField {
  readonly field: string;
  readonly service: string | null;
  readonly warehouse: string | null;
}

/**
 * The sites of a connection, as one value: as its record relates them, where it does, and as they
 * are held.
 */
const oneValue = sql.raw(
  `jsonb_agg(jsonb_build_array(site_id, account_ids, datasource_types) order by site_id)`,
);
const heldSites = sql`(select ${oneValue} from ${connectionSites} where connection_id = t.id)`;
const toldSites = sql`case when ${tellsSites(sql`r`)} then (
      with telling as (
        select null::uuid as connection_id, r -> 'sitesRelations' as relations
      ), ${relatedSites}
      select ${oneValue} from relation
    ) else ${heldSites} end`;

/** What the record says of each column, beside what the row has; events write some of them, too. */
function columnsOf(resource: RecordResource): { name: string; told: SQL; held: SQL }[] {
  const columns = resources[resource].columns.map(({ column, of, kept }) => {
    const held = sql`t.${sql.identifier(column.name)}`;
    return { name: column.name, told: kept ? sql`coalesce(${of}, ${held})` : of, held };
  });
  if (resource !== 'connections') return columns;
  return [...columns, { name: 'sites', told: toldSites, held: heldSites }];
}

/**
 * Compares a page of the service's records with the warehouse: the differences among the page's own
 * records. One that Postgres cannot hold is missing.
 */
export async function comparePage(
  db: Executor,
  resource: RecordResource,
  page: RecordPage,
  since: string | null = null,
): Promise<Difference[]> {
  try {
    return await compareRecords(db, resource, page, since);
  } catch (error) {
    if (!isRefusal(error)) throw error;
    const parts = await halving<string, Difference[]>(
      itemTexts(page),
      (texts) => compareRecords(db, resource, pageOfTexts(page, texts), since),
      (text) => [
        { id: String((JSON.parse(text) as { id?: unknown } | null)?.id), state: 'missing' },
      ],
    );
    return parts.flat();
  }
}

async function compareRecords(
  db: Executor,
  resource: RecordResource,
  page: RecordPage,
  since: string | null,
): Promise<Difference[]> {
  const records =
    resource === 'sites'
      ? { steps: sql`${items(page)}, ${sitesOfCompanies}`, from: sql`site` }
      : { steps: items(page), from: sql`item` };
  const columns = columnsOf(resource);
  const belied = sql.join(
    columns.map(({ told, held }) => sql` or ${held} is distinct from ${told}`),
  );
  const columnFields = sql.join(
    columns.map(
      ({ name, told, held }) =>
        sql` union all select ${`column ${name}`}, (${told})::text, ${held}::text where t.raw is not distinct from r`,
    ),
  );
  const recent =
    since === null || !isVersioned(resource)
      ? sql`true`
      : sql`coalesce(metersync.read_time(r ->> 'updated') >= ${since}::timestamptz, true)`;
  const result = await db.execute<{ id: string; missing: boolean; fields: DifferentField[] }>(sql`
    with ${records.steps}
    select r ->> 'id' as id, t.id is null or t.deleted_at is not null as missing, (
      select coalesce(jsonb_agg(jsonb_build_object('field', field, 'service', a, 'warehouse', b)), '[]')
      from (
        select key as field, (r -> key)::text as a, (t.raw -> key)::text as b
        from (select jsonb_object_keys(r) as key union select jsonb_object_keys(t.raw)) keys
        where r -> key is distinct from t.raw -> key
        ${columnFields}
      ) both_sides where a is distinct from b
    ) as fields
    from ${records.from}
      left join ${tableOf(resource)} t on t.id = ${idOfRecord(resources[resource])}
    where (t.id is null or t.deleted_at is not null or t.raw is distinct from r ${belied}) and ${recent}`);
  return result.rows.map((row) =>
    row.missing
      ? { id: row.id, state: 'missing' }
      : { id: row.id, state: 'different', fields: row.fields },
  );
}

/**
 * Rows that live in the warehouse and that the service did not show; of one company, or of all
 * (null).
 */
export async function extraRows(
  db: Executor,
  resource: RecordResource,
  companyId: string | null,
  seenIds: readonly string[],
  since: string | null = null,
  /** Companies of which no list tells. */
  unlisted: readonly string[] = [],
): Promise<Difference[]> {
  const recent =
    since === null || !isVersioned(resource) ? sql`true` : sql`updated >= ${since}::timestamptz`;
  const owner = resource === 'companies' ? sql`id` : sql`company_id`;
  const seen = printedUuids(seenIds);
  const result = await db.execute<{ id: string }>(sql`
    select id::text as id from ${tableOf(resource)}
    where deleted_at is null and (${companyId}::uuid is null or ${owner} = ${companyId}::uuid)
      and not (id::text = any(${array(seen, 'text')})) and ${recent}
      and (${owner} = any(${array(unlisted, 'uuid')})) is not true
    order by id`);
  return result.rows.map((row) => ({ id: row.id, state: 'extra' }));
}

/**
 * Companies that live though the service's list does not show them: settings name them, or records
 * of them were read.
 */
export async function unlistedCompanies(
  db: Executor,
  configured: readonly string[],
): Promise<{ readonly id: string; readonly wasRead: boolean }[]> {
  const result = await db.execute<{ id: string; wasRead: boolean }>(sql`
    with unlisted as (
      select c.id, ${recordRead(sql`c.id`)} as was_read
      from utility.companies c
      where c.deleted_at is null and c.raw is null
    )
    select id, was_read as "wasRead"
    from unlisted
    where was_read or id = any(${array(configured, 'uuid')})
    order by id`);
  return result.rows;
}

export interface ReadingsCompared {
  readonly differences: readonly Difference[];
  /** Distinct readings. */
  readonly keys: number;
}

/**
 * Compares readings of a meter, those that start since a moment where one is given; ids of
 * differences are `meter@start/seconds/unit`. One that Postgres cannot hold is missing.
 */
export async function compareIntervals(
  warehouse: Pick<Warehouse, 'db' | 'zoneIsUtc'>,
  meterId: string,
  columns: IntervalColumns,
  since: string | null = null,
): Promise<ReadingsCompared> {
  const parts = await halving<number, ReadingsCompared>(
    [...columns.startAt.keys()],
    (places) => compareReadings(warehouse, meterId, readingsAt(columns, places), since),
    (place) => ({
      differences: [{ id: `${meterId}@${columns.startAt[place]}`, state: 'missing' }],
      keys: 1,
    }),
  );
  return {
    differences: parts.flatMap(({ differences }) => differences),
    keys: parts.reduce((sum, { keys }) => sum + keys, 0),
  };
}

/** Times that `metersync.read_time` casts as they are. */
const datedTime = /^\d{4}-\d\d-\d\d/;

/**
 * Readings that the service told, as a table `told` with the columns of theirs. Postgres reads
 * their times and amounts.
 */
function told(columns: IntervalColumns, since: string | null): SQL {
  const { startAt, endAt } = columns;
  const dated = [...startAt, ...endAt].every((time) => time === null || datedTime.test(time));
  const times = (values: readonly (string | null)[]): SQL =>
    array(values, dated ? 'timestamptz' : 'text');
  const time = (name: 's' | 'e'): SQL => sql.raw(dated ? name : `metersync.read_time(${name})`);
  return sql`told as materialized (
    select * from (
      select ${time('s')} as start_at, coalesce(g, extract(epoch from ${time('e')} - ${time('s')})::int) as granularity_seconds,
        coalesce(units, '') as usage_units, usage, quality
      from unnest(${times(startAt)}, ${times(endAt)}, ${array(columns.granularitySeconds, 'int')},
        ${array(columns.usage, 'numeric')}, ${array(columns.usageUnits, 'text')}, ${array(columns.quality, 'text')})
        as t (s, e, g, usage, units, quality)
    ) readings where ${since}::timestamptz is null or start_at >= ${since}::timestamptz
  )`;
}

/**
 * Where the warehouse's readings of theirs start. As two values they let Postgres plan for their
 * months alone.
 */
function spanOf(columns: IntervalColumns, zoneIsUtc: boolean): SQL {
  const plain = plainReadings(columns, zoneIsUtc);
  return plain === undefined
    ? sql`(select min(start_at) from told) and (select max(start_at) from told)`
    : sql`${plain.from}::timestamptz and ${plain.to}::timestamptz`;
}

const keyOf = (table: string): SQL =>
  sql.raw(
    `'@' || ${table}.start_at || '/' || ${table}.granularity_seconds || '/' || ${table}.usage_units`,
  );

async function compareReadings(
  { db, zoneIsUtc }: Pick<Warehouse, 'db' | 'zoneIsUtc'>,
  meterId: string,
  columns: IntervalColumns,
  since: string | null,
): Promise<ReadingsCompared> {
  const result = await db.execute<{
    id: string | null;
    missing: boolean;
    keys: number;
    fields: DifferentField[];
  }>(sql`
    with ${told(columns, since)}
    select ${meterId} || ${keyOf('told')} as id, h.start_at is null as missing, 0 as keys, (
      select jsonb_agg(jsonb_build_object('field', field, 'service', a, 'warehouse', b))
      from (values ('usage', told.usage::text, h.usage::text), ('quality', told.quality, h.quality)) as f (field, a, b)
      where a is distinct from b
    ) as fields
    from told left join (
      select * from utility.intervals
      where meter_id = ${meterId} and start_at between ${spanOf(columns, zoneIsUtc)}
    ) h using (granularity_seconds, usage_units, start_at)
    where h.start_at is null or (told.usage, told.quality) is distinct from (h.usage, h.quality)
    union all
    select null, false, count(*)::int, null from (select distinct start_at, granularity_seconds, usage_units from told) keys`);
  const differences = result.rows.flatMap((row): Difference[] =>
    row.id === null
      ? []
      : [
          row.missing
            ? { id: row.id, state: 'missing' }
            : { id: row.id, state: 'different', fields: row.fields },
        ],
  );
  return { differences, keys: result.rows.find((row) => row.id === null)?.keys ?? 0 };
}

/** How many readings of a meter the warehouse holds, since a moment where one is given. */
export async function countIntervals(
  db: Executor,
  meterId: string,
  since: string | null = null,
): Promise<number> {
  const result = await db.execute<{ count: number }>(
    sql`select count(*)::int as count from utility.intervals
      where meter_id = ${meterId} and (${since}::timestamptz is null or start_at >= ${since}::timestamptz)`,
  );
  return result.rows[0]?.count ?? 0;
}

/**
 * Readings of a meter that the service did not tell among the given ones. The keys of what it told
 * are collected in Postgres, so that memory stays flat however many there are.
 */
export async function extraReadings(
  db: Database,
  meterId: string,
  pages: AsyncIterable<IntervalColumns>,
  since: string | null,
): Promise<Difference[]> {
  return await db.transaction(async (tx) => {
    await tx.execute(sql`
      create temp table told_readings (start_at timestamptz, granularity_seconds int, usage_units text) on commit drop`);
    for await (const columns of pages) {
      await tx.execute(sql`
        with ${told(columns, since)}
        insert into told_readings select start_at, granularity_seconds, usage_units from told`);
    }
    const result = await tx.execute<{ id: string }>(sql`
      select ${meterId} || ${keyOf('i')} as id
      from utility.intervals i left join told_readings r using (start_at, granularity_seconds, usage_units)
      where i.meter_id = ${meterId} and r.start_at is null
        and (${since}::timestamptz is null or i.start_at >= ${since}::timestamptz)
      order by i.start_at, 1`);
    return result.rows.map(({ id }) => ({ id, state: 'extra' }));
  });
}

/** An event of the journal that is about a record. */
export interface EventBehind {
  readonly id: string;
  readonly type: string;
  readonly outcome: string;
  readonly occurredAt: string | null;
  readonly receivedAt: string;
}

/** The last events about each of the records: a meter for readings, whose ids begin with it. */
export async function eventsBehind(
  db: Executor,
  recordIds: readonly string[],
): Promise<Map<string, EventBehind[]>> {
  const result = await db.execute<{ record: string; events: EventBehind[] }>(sql`
    select record, jsonb_agg(jsonb_build_object('id', e.id, 'type', e.type, 'outcome', e.outcome,
      'occurredAt', e.occurred_at::text, 'receivedAt', e.received_at::text) order by e.recorded_at desc) as events
    from unnest(${array(recordIds, 'text')}) as record, lateral (
      select known.*
      from (
        select id from metersync.journal where record_id = record order by recorded_at desc limit 5
      ) latest cross join lateral (
        select * from metersync.events where id = latest.id offset 0
      ) known
    ) e group by record`);
  return new Map(result.rows.map(({ record, events }) => [record, events]));
}

/**
 * Why Postgres refused records that the warehouse lacks, by resource and id: readings by their
 * meter and start.
 */
export async function refusals(
  db: Executor,
  records: readonly { readonly resource: string; readonly id: string }[],
): Promise<Map<string, string>> {
  const column = (of: (record: (typeof records)[number]) => string): SQL =>
    array(records.map(of), 'text');
  const result = await db.execute<{ resource: string; id: string; error: string }>(sql`
    select resource, id, error from metersync.rejected_records
    join unnest(${column(({ resource }) => resource)}, ${column(({ id }) => id)}, ${column(({ id }) => refusedId(id))})
      as asked (resource, id, record_id) using (resource, record_id)`);
  return new Map(result.rows.map(({ resource, id, error }) => [`${resource} ${id}`, error]));
}

/**
 * Meters of a company whose readings the warehouse holds though the service no longer lists the
 * meter.
 */
export async function metersWithReadings(
  db: Executor,
  companyId: string | null,
): Promise<string[]> {
  const result = await db.execute<{ id: string }>(sql`
    select m.id from utility.meters m
    where (${companyId}::uuid is null or m.company_id = ${companyId}::uuid)
      and exists (select from utility.intervals i where i.meter_id = m.id) order by m.id`);
  return result.rows.map((row) => row.id);
}

/** Companies that live, for a service without a list of them. */
export async function knownCompanies(db: Executor): Promise<string[]> {
  const result = await db.execute<{ id: string }>(
    sql`select id from utility.companies where deleted_at is null order by id`,
  );
  return result.rows.map((row) => row.id);
}
