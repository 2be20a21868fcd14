import { type SQL, sql } from 'drizzle-orm';
import { array, columnNames, printedUuids } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { isRefusal } from '../connection/failures.ts';
import { splitOnRefusal } from '../connection/split-on-refusal.ts';
import { hasListOfSites } from '../deletes/listing.ts';
import { row } from '../deletes/tombstone.ts';
import { listsSites, relatedSites } from '../records/connection-sites.ts';
import { itemTexts, pageOfTexts } from '../records/item-texts.ts';
import { alsoListing, ownerOf } from '../records/owner.ts';
import { items, type RecordPage } from '../records/page.ts';
import { refusedAs } from '../records/rejected-records.ts';
import { sitesOfCompanies } from '../records/sources.ts';
import { unreadableOf } from '../records/unreadable.ts';
import { idOfRecord } from '../records/upsert.ts';
import {
  idOf,
  isListedByCompany,
  isVersioned,
  type RecordResource,
  resources,
  tableOf,
} from '../resources.ts';
import { alsoListed } from '../schema/metersync.ts';
import { connectionSites } from '../schema/utility.ts';

/**
 * A record that the warehouse lacks, has in excess, or holds with other values than the service.
 */
export interface Difference {
  /** That of its refusal for a record without one, or of its company's for a site: see `refusedAs`. */
  readonly id: string;
  readonly state: 'missing' | 'extra' | 'different';
  /** Differing fields of a record on both sides: JSON as text, null where a side has none. */
  readonly fields?: readonly DifferentField[];
}

export interface DifferentField {
  readonly field: string;
  readonly service: string | null;
  readonly warehouse: string | null;
}

const { siteId, accountIds, datasourceTypes } = connectionSites;

/**
 * The sites of a connection as one value: those of its record, if it lists them, and those of the
 * warehouse.
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
const listedSites = sql`case
      when ${listsSites(sql`r`)} then (
        with listing as (
          select
            null::uuid as connection_id,
            r -> 'sitesRelations' as relations
        ), ${relatedSites}
        select ${oneValue}
        from relation
      )
      else ${heldSites}
    end`;

/** The fields of a record `r` that no column could be filled from. */
const unreadable = (resource: RecordResource): SQL =>
  unreadableOf(resources[resource], resources[resource].columns);

/** The value of each column in the record and in the row. Events also write some columns. */
function columnsOf(resource: RecordResource): { name: string; reported: SQL; held: SQL }[] {
  const columns = resources[resource].columns.map(({ column, of, kept, isOwner }) => {
    const held = sql`${row}.${sql.identifier(column.name)}`;
    const reported = isOwner ? ownerOf(resource) : of;
    return {
      name: column.name,
      reported: kept ? sql`coalesce(${reported}, ${held})` : reported,
      held,
    };
  });
  columns.push({
    name: 'unreadable',
    reported: sql`read.unreadable`,
    held: sql`${row}.unreadable`,
  });
  if (resource !== 'connections') return columns;
  return [...columns, { name: 'sites', reported: listedSites, held: heldSites }];
}

/** A page of the service's records, compared with the warehouse. */
export interface PageCompared {
  readonly differences: readonly Difference[];
  /** Values of its records that no column can hold. */
  readonly unreadable: number;
}

/**
 * Compares a page of the service's records with the warehouse. Returns the differences among the
 * page's own records; one that Postgres cannot hold is missing. `ids` are as `writePage` has them.
 */
export async function comparePage(
  db: Executor,
  resource: RecordResource,
  page: RecordPage,
  ids: readonly (string | null)[],
  since: string | null = null,
): Promise<PageCompared> {
  try {
    return await compareRecords(db, resource, page, since);
  } catch (error) {
    if (!isRefusal(error)) throw error;
    const parts = await splitOnRefusal(
      itemTexts(page).map((text, at) => ({ id: ids[at] ?? null, text })),
      (records) => {
        const texts = records.map(({ text }) => text);
        return compareRecords(db, resource, pageOfTexts(page, texts), since);
      },
      (record): PageCompared => ({
        differences: [{ id: refusedAs(record), state: 'missing' }],
        unreadable: 0,
      }),
    );
    return {
      differences: parts.flatMap(({ differences }) => differences),
      unreadable: parts.reduce((sum, part) => sum + part.unreadable, 0),
    };
  }
}

async function compareRecords(
  db: Executor,
  resource: RecordResource,
  page: RecordPage,
  since: string | null,
): Promise<PageCompared> {
  const records =
    resource === 'sites'
      ? { steps: sql`${items(page)}, ${sitesOfCompanies}`, from: sql`site` }
      : { steps: items(page), from: sql`item` };
  const columns = columnsOf(resource);
  const isMissing = sql`${row.id} is null or ${row.deletedAt} is not null`;
  const differing = columns.map(
    ({ reported, held }) => sql`or ${held} is distinct from ${reported}`,
  );
  const differs = sql`${row.raw} is distinct from r
        ${sql.join(differing, sql.raw('\n        '))}`;
  const result = await db.execute<Compared>(sql`
    with ${records.steps}
    select
      r ->> 'id' as id,
      place::int,
      ${isMissing} as missing,
      (
        select count(*)::int
        from jsonb_object_keys(read.unreadable)
      ) as unreadable,
      ${isMissing} or ${differs} as differs,
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
      -- With offset 0 each row is looked up by its id; otherwise the whole table is read for a few.
      left join lateral (
        select *
        from ${tableOf(resource)}
        where id = ${idOfRecord(resources[resource])}
        offset 0
      ) ${row} on true
      cross join lateral (select ${unreadable(resource)} as unreadable offset 0) read
    where (
        ${isMissing}
        or ${differs}
        or read.unreadable is not null
      )
      and ${saysSince(resource, since)}`);
  const withoutId = ({ place }: Compared): string =>
    refusedAs({ id: null, text: itemTexts(page)[place - 1] ?? '' });
  const differences = result.rows.flatMap((record): Difference[] => {
    const { missing, differs, fields } = record;
    if (!differs) return [];
    const id = record.id ?? withoutId(record);
    return [missing ? { id, state: 'missing' } : { id, state: 'different', fields }];
  });
  return { differences, unreadable: result.rows.reduce((sum, row) => sum + row.unreadable, 0) };
}

interface Compared extends Record<string, unknown> {
  readonly id: string | null;
  /** The place of the record in its page, of a site that of its company; from 1. */
  readonly place: number;
  readonly missing: boolean;
  readonly differs: boolean;
  readonly unreadable: number;
  readonly fields: readonly DifferentField[];
}

/**
 * The fields `(field, a, b)` of a record `r` and its row: differing fields of the record, or the
 * columns if the records are equal.
 */
function fieldsOf(columns: ReturnType<typeof columnsOf>): SQL {
  const ofColumns = columns.map(
    ({ name, reported, held }) => sql`
          union all
          select
            ${`column ${name}`},
            (${reported})::text,
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

/** Whether a record `r` changed since a moment, or does not say when it changed. */
const saysSince = (resource: RecordResource, since: string | null): SQL =>
  since === null || !isVersioned(resource)
    ? sql`true`
    : sql`coalesce(metersync.read_time(r ->> 'updated') >= ${since}::timestamptz, true)`;

/** A row that a listing should contain and did not. */
export interface UnlistedRow {
  readonly id: string;
  /** The companies whose listings should contain it: its owner, and others that also list it. */
  readonly companies: readonly string[];
}

/** The companies whose listings should contain a `row`. */
const listingCompanies = (resource: RecordResource): SQL => sql`array(
        select ${row.companyId}::text
        where ${row.companyId} is not null
        union all
        select other.company_id::text${alsoListing(resource)}
      )`;

/**
 * Reads live rows of the warehouse that the service did not list: of one company, including rows of
 * others that it is noted as listing, or of all (null). No list contains sites of a company whose
 * record has none.
 */
export async function unlistedRows(
  db: Executor,
  resource: RecordResource,
  companyId: string | null,
  seenIds: readonly string[],
  {
    since = null,
    unlisted = [],
    lives = sql`${row.deletedAt} is null`,
  }: {
    readonly since?: string | null;
    /** Companies that no list contains. */
    readonly unlisted?: readonly string[];
    readonly lives?: SQL;
  } = {},
): Promise<UnlistedRow[]> {
  const owner = resource === 'companies' ? row.id : row.companyId;
  const ofCompany = companyId === null ? sql`true` : sql`${owner} = ${companyId}::uuid`;
  const recent =
    since === null || !isVersioned(resource)
      ? sql`true`
      : sql`${row.updated} >= ${since}::timestamptz`;
  const seen = array(printedUuids(seenIds), 'text');
  const listing = resource === 'companies' ? sql`array[]::text[]` : listingCompanies(resource);
  const hasOthers = companyId !== null && isListedByCompany(resource);
  const ofOthers = sql`
    union all
    select
      theirs.id,
      theirs.companies
    from ${alsoListed} listed
      cross join lateral (
        select
          ${row.id}::text as id,
          ${listing} as companies
        from ${tableOf(resource)} ${row}
        where ${row.id} = ${idOf(resource, sql`listed.record_id`)}
          and ${row.companyId} <> ${companyId}::uuid
          and ${lives}
          and ${recent}
        offset 0
      ) theirs
    where listed.company_id = ${companyId}::uuid
      and listed.resource = ${resource}
      and not (listed.record_id = any(${seen}))`;
  const hasList = resource === 'sites' ? sql` and ${hasListOfSites}` : sql``;
  const result = await db.execute<{ id: string; companies: string[] }>(sql`
    select
      ${row.id}::text as id,
      ${listing} as companies
    from ${tableOf(resource)} ${row}
    where ${lives}
      and ${ofCompany}
      and not (${row.id}::text = any(${seen}))
      and ${recent}
      -- A row without a company is extra, too.
      and (${owner} = any(${array(unlisted, 'uuid')})) is not true${hasList}${hasOthers ? ofOthers : sql``}
    order by id`);
  return result.rows;
}
