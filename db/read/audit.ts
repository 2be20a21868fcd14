import { type SQL, sql } from 'drizzle-orm';
import type { AuditResource } from '../../contract/names.ts';
import { array, printedUuids } from '../arrays.ts';
import type { Executor } from '../connect.ts';
import { isRefusal } from '../failures.ts';
import { halving } from '../halving.ts';
import type { IntervalColumns } from '../write/interval-text.ts';
import { itemTexts, pageOfTexts } from '../write/item-texts.ts';
import { items, type RecordPage, rawOf } from '../write/page.ts';

export type RecordResource = Exclude<AuditResource, 'intervals'>;

/** A record that the warehouse lacks, or holds otherwise than the service. */
export interface Difference {
  readonly id: string;
  readonly state: 'missing' | 'extra' | 'different';
}

const tables: Readonly<Record<RecordResource, string>> = {
  companies: 'companies',
  sites: 'sites',
  connections: 'connections',
  documents: 'documents',
  usageData: 'usage_data',
  meters: 'meters',
};

/** Columns that events write too: they must say what raw says. */
const headers: Partial<Record<RecordResource, SQL>> = {
  connections: sql`(t.status, t.url, t.external_id, t.created, t.updated) is distinct from (r ->> 'status', r ->> 'url',
    r ->> 'externalId', metersync.read_time(r ->> 'created'), metersync.read_time(r ->> 'updated'))`,
  documents: sql`(t.created, t.updated) is distinct from
    (metersync.read_time(r ->> 'created'), metersync.read_time(r ->> 'updated'))`,
};

/**
 * Compares a page of the service's records with the warehouse: the differences among the page's own records. One that
 * Postgres cannot hold is missing.
 */
export async function comparePage(
  db: Executor,
  resource: RecordResource,
  page: RecordPage,
): Promise<Difference[]> {
  try {
    return await compareRecords(db, resource, page);
  } catch (error) {
    if (!isRefusal(error)) throw error;
    const parts = await halving<string, Difference[]>(
      itemTexts(page),
      (texts) => compareRecords(db, resource, pageOfTexts(page, texts)),
      (text) => [{ id: String((JSON.parse(text) as { id?: unknown } | null)?.id), state: 'missing' }],
    );
    return parts.flat();
  }
}

async function compareRecords(
  db: Executor,
  resource: RecordResource,
  page: RecordPage,
): Promise<Difference[]> {
  const id = resource === 'meters' ? sql`r ->> 'id'` : sql`(r ->> 'id')::uuid`;
  const source =
    resource === 'sites'
      ? sql`(select s.r, c.place from item c, jsonb_array_elements(metersync.elements(c.r -> 'sites')) as s (r)) record`
      : sql`item`;
  const result = await db.execute<{ id: string; missing: boolean }>(sql`
    with ${items(page)}
    select r ->> 'id' as id, t.id is null or t.deleted_at is not null as missing
    from ${source} left join ${sql.raw(`utility.${tables[resource]}`)} t on t.id = ${id}
    where t.id is null or t.deleted_at is not null or t.raw is distinct from ${rawOf}
      ${headers[resource] === undefined ? sql`` : sql`or ${headers[resource]}`}`);
  return result.rows.map((row) => ({ id: row.id, state: row.missing ? 'missing' : 'different' }));
}

/** Rows that live in the warehouse and that the service did not show; of one company, or of all (null). */
export async function extraRows(
  db: Executor,
  resource: RecordResource,
  companyId: string | null,
  seenIds: readonly string[],
): Promise<Difference[]> {
  const owner = resource === 'companies' ? sql`id` : sql`company_id`;
  const seen = resource === 'meters' ? seenIds : printedUuids(seenIds);
  const result = await db.execute<{ id: string }>(sql`
    select id::text as id from ${sql.raw(`utility.${tables[resource]}`)}
    where deleted_at is null and (${companyId}::uuid is null or ${owner} = ${companyId}::uuid)
      and not (id::text = any(${array(seen, 'text')})) order by id`);
  return result.rows.map((row) => ({ id: row.id, state: 'extra' }));
}

export interface ReadingsCompared {
  readonly differences: readonly Difference[];
  /** Distinct readings. */
  readonly keys: number;
}

/**
 * Compares readings of a meter; ids of differences are `meter@start/seconds/unit`. One that Postgres cannot hold is
 * missing.
 */
export async function compareIntervals(
  db: Executor,
  meterId: string,
  columns: IntervalColumns,
): Promise<ReadingsCompared> {
  const parts = await halving<number, ReadingsCompared>(
    [...columns.startAt.keys()],
    (places) => compareReadings(db, meterId, readingsAt(columns, places)),
    (place) => ({ differences: [{ id: `${meterId}@${columns.startAt[place]}`, state: 'missing' }], keys: 1 }),
  );
  return {
    differences: parts.flatMap(({ differences }) => differences),
    keys: parts.reduce((sum, { keys }) => sum + keys, 0),
  };
}

function readingsAt(columns: IntervalColumns, places: readonly number[]): IntervalColumns {
  const pick = <T>(values: readonly T[]): T[] => places.map((place) => values[place] as T);
  return {
    startAt: pick(columns.startAt),
    endAt: pick(columns.endAt),
    granularitySeconds: pick(columns.granularitySeconds),
    usage: pick(columns.usage),
    usageUnits: pick(columns.usageUnits),
    quality: pick(columns.quality),
    updated: pick(columns.updated),
  };
}

async function compareReadings(
  db: Executor,
  meterId: string,
  columns: IntervalColumns,
): Promise<ReadingsCompared> {
  const text = (values: readonly (string | null)[]): SQL => sql`${sql.param(values)}::text[]`;
  const result = await db.execute<{ id: string | null; missing: boolean; keys: number }>(sql`
    with told as materialized (
      select metersync.read_time(s) as start_at,
        coalesce(g, extract(epoch from metersync.read_time(e) - metersync.read_time(s))::int) as granularity_seconds,
        coalesce(units, '') as usage_units, usage::numeric as usage, quality
      from unnest(${text(columns.startAt)}, ${text(columns.endAt)}, ${sql.param(columns.granularitySeconds)}::int[],
        ${text(columns.usage)}, ${text(columns.usageUnits)}, ${text(columns.quality)})
        as t (s, e, g, usage, units, quality)
    ), span as (select min(start_at) as first, max(start_at) as last from told)
    select ${meterId} || '@' || told.start_at || '/' || granularity_seconds || '/' || usage_units as id,
      h.start_at is null as missing, 0 as keys
    from told left join (
      select i.* from utility.intervals i, span
      where meter_id = ${meterId} and i.start_at between span.first and span.last
    ) h using (granularity_seconds, usage_units, start_at)
    where h.start_at is null or (told.usage, told.quality) is distinct from (h.usage, h.quality)
    union all
    select null, false, count(distinct (start_at, granularity_seconds, usage_units))::int from told`);
  const differences = result.rows.flatMap((row): Difference[] =>
    row.id === null ? [] : [{ id: row.id, state: row.missing ? 'missing' : 'different' }],
  );
  return { differences, keys: result.rows.find((row) => row.id === null)?.keys ?? 0 };
}

/** How many readings of a meter the warehouse holds. */
export async function countIntervals(db: Executor, meterId: string): Promise<number> {
  const result = await db.execute<{ count: number }>(
    sql`select count(*)::int as count from utility.intervals where meter_id = ${meterId}`,
  );
  return result.rows[0]?.count ?? 0;
}

/** Meters of a company whose readings the warehouse holds though the service no longer lists the meter. */
export async function metersWithReadings(db: Executor, companyId: string | null): Promise<string[]> {
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
