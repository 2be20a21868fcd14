import { and, eq, gte, isNull, type SQL, sql } from 'drizzle-orm';
import { alias, type PgColumn } from 'drizzle-orm/pg-core';
import { array, columnNames, printedUuids, type RowOf, unnested } from '../arrays.ts';
import type { Database, Executor, Warehouse } from '../connect.ts';
import { isRefusal } from '../failures.ts';
import { halving } from '../halving.ts';
import { alsoListing, ownerOf } from '../owner.ts';
import { idOf, isVersioned, type RecordResource, resources, tableOf } from '../resources.ts';
import { alsoListed, events, journal, rejectedRecords } from '../schema/metersync.ts';
import { companies, connectionSites, intervals, meters } from '../schema/utility.ts';
import { recordRead } from '../strangers.ts';
import { row } from '../tombstone.ts';
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

const { siteId, accountIds, datasourceTypes } = connectionSites;

/**
 * The sites of a connection, as one value: as its record relates them, where it does, and as they
 * are held.
 */
const oneValue = sql`jsonb_agg(
        jsonb_build_array(${columnNames([siteId, accountIds, datasourceTypes])})
        order by ${columnNames([siteId])}
      )`;
const heldSites = sql`(
      select ${oneValue}
      from ${connectionSites}
      where ${connectionSites.connectionId} = ${row.id}
    )`;
const toldSites = sql`case
      when ${tellsSites(sql`r`)} then (
        with telling as (
          select
            null::uuid as connection_id,
            r -> 'sitesRelations' as relations
        ), ${relatedSites}
        select ${oneValue}
        from relation
      )
      else ${heldSites}
    end`;

/** What the record says of each column, beside what the row has; events write some of them, too. */
function columnsOf(resource: RecordResource): { name: string; told: SQL; held: SQL }[] {
  const columns = resources[resource].columns.map(({ column, of, kept, isOwner }) => {
    const held = sql`${row}.${sql.identifier(column.name)}`;
    const told = isOwner ? ownerOf(resource) : of;
    return { name: column.name, told: kept ? sql`coalesce(${told}, ${held})` : told, held };
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
  const isMissing = sql`${row.id} is null or ${row.deletedAt} is not null`;
  const belied = columns.map(({ told, held }) => sql`or ${held} is distinct from ${told}`);
  const result = await db.execute<{ id: string; missing: boolean; fields: DifferentField[] }>(sql`
    with ${records.steps}
    select
      r ->> 'id' as id,
      ${isMissing} as missing,
      (
        select coalesce(
          jsonb_agg(jsonb_build_object('field', field, 'service', a, 'warehouse', b)),
          '[]'
        )
        from (${fieldsOf(columns)}
        ) both_sides
        where a is distinct from b
      ) as fields
    from ${records.from}
      left join ${tableOf(resource)} ${row} on ${row.id} = ${idOfRecord(resources[resource])}
    where (
        ${isMissing}
        or ${row.raw} is distinct from r
        ${sql.join(belied, sql.raw('\n        '))}
      )
      and ${saysSince(resource, since)}`);
  return result.rows.map(({ id, missing, fields }) =>
    missing ? { id, state: 'missing' } : { id, state: 'different', fields },
  );
}

/**
 * The fields of a record `r` and its row on both sides, `(field, a, b)`: those of the record that
 * are not alike, and the columns where the records are.
 */
function fieldsOf(columns: ReturnType<typeof columnsOf>): SQL {
  const ofColumns = columns.map(
    ({ name, told, held }) => sql`
          union all
          select
            ${`column ${name}`},
            (${told})::text,
            ${held}::text
          where ${row.raw} is not distinct from r`,
  );
  return sql`
          select
            key as field,
            (r -> key)::text as a,
            (${row.raw} -> key)::text as b
          from (
            select jsonb_object_keys(r) as key
            union
            select jsonb_object_keys(${row.raw})
          ) keys
          where r -> key is distinct from ${row.raw} -> key${sql.join(ofColumns)}`;
}

/** Whether a record `r` says that it changed since a moment, or does not say when it did. */
const saysSince = (resource: RecordResource, since: string | null): SQL =>
  since === null || !isVersioned(resource)
    ? sql`true`
    : sql`coalesce(metersync.read_time(r ->> 'updated') >= ${since}::timestamptz, true)`;

/** A row that a listing should show and did not. */
export interface Unshown {
  readonly id: string;
  /** Companies whose listings should show it, this one included. */
  readonly listings: number;
}

/**
 * Rows that live in the warehouse and that the service did not show; of one company, those of
 * others included that it was known to list, or of all (null).
 */
export async function unshownRows(
  db: Executor,
  resource: RecordResource,
  companyId: string | null,
  seenIds: readonly string[],
  since: string | null = null,
  /** Companies of which no list tells. */
  unlisted: readonly string[] = [],
): Promise<Unshown[]> {
  const owner = resource === 'companies' ? row.id : row.companyId;
  const ofCompany = companyId === null ? sql`true` : sql`${owner} = ${companyId}::uuid`;
  const recent =
    since === null || !isVersioned(resource)
      ? sql`true`
      : sql`${row.updated} >= ${since}::timestamptz`;
  const seen = array(printedUuids(seenIds), 'text');
  const listings =
    resource === 'companies' ? sql`1` : sql`(1 + (select count(*)${alsoListing(resource)}))::int`;
  const hasOthers = companyId !== null && resource !== 'companies';
  const ofOthers = sql`
    union all
    select
      theirs.id,
      theirs.listings
    from ${alsoListed} listed
      cross join lateral (
        select
          ${row.id}::text as id,
          ${listings} as listings
        from ${tableOf(resource)} ${row}
        where ${row.id} = ${idOf(resource, sql`listed.record_id`)}
          and ${row.companyId} <> ${companyId}::uuid
          and ${row.deletedAt} is null
          and ${recent}
        offset 0
      ) theirs
    where listed.company_id = ${companyId}::uuid
      and listed.resource = ${resource}
      and not (listed.record_id = any(${seen}))`;
  const result = await db.execute<{ id: string; listings: number }>(sql`
    select
      ${row.id}::text as id,
      ${listings} as listings
    from ${tableOf(resource)} ${row}
    where ${row.deletedAt} is null
      and ${ofCompany}
      and not (${row.id}::text = any(${seen}))
      and ${recent}
      -- A row without a company is nobody's: it is extra, too.
      and (${owner} = any(${array(unlisted, 'uuid')})) is not true${hasOthers ? ofOthers : sql``}
    order by id`);
  return result.rows;
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
      select
        ${companies.id},
        ${recordRead(companies.id)} as was_read
      from ${companies}
      where ${companies.deletedAt} is null
        and ${companies.raw} is null
    )
    select
      id,
      was_read as "wasRead"
    from unlisted
    where was_read
      or id = any(${array(configured, 'uuid')})
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
  const readings = unnestedReadings(columns, times);
  return sql`told as materialized (
    select *
    from (
      select
        ${time('s')} as start_at,
        coalesce(g, extract(epoch from ${time('e')} - ${time('s')})::int) as granularity_seconds,
        coalesce(units, '') as usage_units,
        usage,
        quality
      from ${readings}
    ) readings
    where ${since}::timestamptz is null
      or start_at >= ${since}::timestamptz
  )`;
}

/** Readings as a table `t (s, e, g, usage, units, quality)`, each column as one parameter. */
const unnestedReadings = (
  { startAt, endAt, granularitySeconds, usage, usageUnits, quality }: IntervalColumns,
  times: (values: readonly (string | null)[]) => SQL,
): SQL => sql`unnest(
        ${times(startAt)},
        ${times(endAt)},
        ${array(granularitySeconds, 'int')},
        ${array(usage, 'numeric')},
        ${array(usageUnits, 'text')},
        ${array(quality, 'text')}
      ) as t (s, e, g, usage, units, quality)`;

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

const reading = alias(intervals, 'reading');

const { startAt, granularitySeconds, usageUnits } = intervals;

/** What tells a reading of a meter from its others. */
const readingKey = columnNames([startAt, granularitySeconds, usageUnits]);

/** That key of a table as text, to stand behind the meter. */
const keyOf = (table: SQL | typeof reading): SQL => {
  const [start, seconds, units] = [startAt, granularitySeconds, usageUnits].map(
    ({ name }) => sql`${table}.${sql.identifier(name)}`,
  );
  return sql`'@' || ${start} || '/' || ${seconds} || '/' || ${units}`;
};

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
    select
      ${meterId} || ${keyOf(sql`told`)} as id,
      held.start_at is null as missing,
      0 as keys,
      (
        select jsonb_agg(jsonb_build_object('field', field, 'service', a, 'warehouse', b))
        from (
          values
            ('usage', told.usage::text, held.usage::text),
            ('quality', told.quality, held.quality)
        ) as f (field, a, b)
        where a is distinct from b
      ) as fields
    from told
      left join (
        select *
        from ${intervals}
        where ${intervals.meterId} = ${meterId}
          and ${intervals.startAt} between ${spanOf(columns, zoneIsUtc)}
      ) held using (${readingKey})
    where held.start_at is null
      or (told.usage, told.quality) is distinct from (held.usage, held.quality)
    union all
    select
      null,
      false,
      count(*)::int,
      null
    from (
      select distinct ${readingKey}
      from told
    ) keys`);
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
  const [held] = await db
    .select({ count: sql<number>`count(*)::int` })
    .from(intervals)
    .where(and(eq(intervals.meterId, meterId), startsSince(intervals.startAt, since)));
  return held?.count ?? 0;
}

/** Whether a reading starts since a moment; any does where none is given. */
const startsSince = (start: PgColumn, since: string | null): SQL | undefined =>
  since === null ? undefined : gte(start, sql`${since}::timestamptz`);

/** Keys of readings that the service told, as long as the transaction lives. */
const toldReadings = sql.identifier('told_readings');

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
    await makeToldReadings(tx);
    for await (const columns of pages) await noteToldReadings(tx, columns, since);
    return await readingsNotTold(tx, meterId, since);
  });
}

async function makeToldReadings(tx: Executor): Promise<void> {
  await tx.execute(sql`
    create temp table ${toldReadings} (
      start_at timestamptz,
      granularity_seconds int,
      usage_units text
    ) on commit drop`);
}

async function noteToldReadings(
  tx: Executor,
  columns: IntervalColumns,
  since: string | null,
): Promise<void> {
  await tx.execute(sql`
    with ${told(columns, since)}
    insert into ${toldReadings} (${readingKey})
    select ${readingKey}
    from told`);
}

async function readingsNotTold(
  tx: Executor,
  meterId: string,
  since: string | null,
): Promise<Difference[]> {
  const result = await tx.execute<{ id: string }>(sql`
    select ${meterId} || ${keyOf(reading)} as id
    from ${intervals} ${reading}
      left join ${toldReadings} known using (${readingKey})
    where ${reading.meterId} = ${meterId}
      and known.start_at is null
      and ${startsSince(reading.startAt, since) ?? sql`true`}
    order by ${reading.startAt}, 1`);
  return result.rows.map(({ id }) => ({ id, state: 'extra' }));
}

/** An event of the journal that is about a record. */
export interface EventBehind {
  readonly id: string;
  readonly type: string;
  readonly outcome: string;
  readonly occurredAt: string | null;
  readonly receivedAt: string;
}

const eventsBehindMax = 5;

/** The last events about each of the records: a meter for readings, whose ids begin with it. */
export async function eventsBehind(
  db: Executor,
  recordIds: readonly string[],
): Promise<Map<string, EventBehind[]>> {
  const result = await db.execute<{ record: string; events: EventBehind[] }>(sql`
    select
      record,
      jsonb_agg(
        jsonb_build_object(
          'id', known.id,
          'type', known.type,
          'outcome', known.outcome,
          'occurredAt', known.occurred_at::text,
          'receivedAt', known.received_at::text
        )
        order by known.recorded_at desc
      ) as events
    from unnest(${array(recordIds, 'text')}) as record
      cross join lateral (
        select ${journal.id}
        from ${journal}
        where ${journal.recordId} = record
        order by ${journal.recordedAt} desc
        limit ${eventsBehindMax}
      ) latest
      -- With offset 0 each event is looked up by its id, and not all of the journal for a few.
      cross join lateral (
        select *
        from ${events}
        where ${events.id} = latest.id
        offset 0
      ) known
    group by record`);
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
  const asked = unnested('asked', records, [
    ['resource', 'text', ({ resource }) => resource],
    ['id', 'text', ({ id }) => id],
    ['record_id', 'text', ({ id }) => refusedId(id)],
  ]);
  const refused = await db.execute<Refused>(sql`
    select
      ${rejectedRecords.resource},
      asked.id,
      ${rejectedRecords.error}
    from ${rejectedRecords}
      join ${asked} using (resource, record_id)`);
  return new Map(refused.rows.map(({ resource, id, error }) => [`${resource} ${id}`, error]));
}

type Refused = RowOf<typeof rejectedRecords.resource | typeof rejectedRecords.error> & {
  readonly id: string;
};

/**
 * Meters of a company whose readings the warehouse holds though the service no longer lists the
 * meter.
 */
export async function metersWithReadings(
  db: Executor,
  companyId: string | null,
): Promise<string[]> {
  const hasReadings = sql`exists (
    select
    from ${intervals}
    where ${intervals.meterId} = ${meters.id}
  )`;
  const found = await db
    .select({ id: meters.id })
    .from(meters)
    .where(and(companyId === null ? undefined : eq(meters.companyId, companyId), hasReadings))
    .orderBy(meters.id);
  return found.map(({ id }) => id);
}

/** Companies that live, for a service without a list of them. */
export async function knownCompanies(db: Executor): Promise<string[]> {
  const known = await db
    .select({ id: companies.id })
    .from(companies)
    .where(isNull(companies.deletedAt))
    .orderBy(companies.id);
  return known.map(({ id }) => id);
}
