import { and, isNull, or, type SQL, sql } from 'drizzle-orm';
import type { CompanyResource } from '../../contract/endpoints.ts';
import { array, isAmong, printedUuids } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { hasListOfSites, isKept } from '../deletes/absence.ts';
import { decidedToKeep, note } from '../deletes/tombstone.ts';
import { recordRead } from '../records/companies.ts';
import { alsoListing, isListedBy, judgedBy, listerOf } from '../records/listers.ts';
import {
  idOf,
  isListedByCompany,
  isVersioned,
  type RecordResource,
  row,
  tableOf,
} from '../resources.ts';
import { alsoListed, deletes } from '../schema/reads.ts';
import { companies, intervals } from '../schema/utility.ts';

/** A row that a listing should contain but did not. */
export interface UnlistedRow extends Record<string, unknown> {
  readonly id: string;
  /** The companies whose listings should contain it. */
  readonly companies: readonly string[];
  readonly kept: boolean;
}

/**
 * Whether somebody decided to keep a `row` or its company. `row.company_id` is written out: Drizzle
 * leaves out names of tables, and notes have a column of that name, too.
 */
const keptRow = (resource: RecordResource) =>
  resource === 'companies'
    ? isKept(resource)
    : sql<boolean>`(${isKept(resource)} or exists (
        select
        from ${deletes} ${note}
        where ${note.resource} = 'companies'
          and ${note.recordId} = row.company_id::text
          and ${decidedToKeep}
      ))`;

/** Companies whose listings should contain a `row`: its lister, and others that list its record. */
function listingCompanies(resource: RecordResource): SQL<string[]> {
  if (resource === 'companies') return sql`array[]::text[]`;
  const others = sql`union all select other.company_id::text
    from ${alsoListing(resource)} other`;
  return sql`array(
    select ${judgedBy(resource)}::text
    where ${row.companyId} is not null
    ${isListedByCompany(resource) ? others : sql``}
  )`;
}

/**
 * Reads live rows that the service did not list, of all companies (null) or of one company,
 * including rows of other listers whose records it is known to list. Sites that no list could
 * contain, because their company's record has no list of sites, are left out.
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
    readonly lives?: SQL | undefined;
  } = {},
): Promise<UnlistedRow[]> {
  const lister = resource === 'companies' ? sql`${row.id}` : judgedBy(resource);
  const isListed = companyId !== null && isListedByCompany(resource);
  const isSince =
    since === null || !isVersioned(resource) ? sql`true` : sql`${row.updated} >= ${since}`;
  const isOfCompany = isListed
    ? isListedBy(sql`${companyId}::uuid`)
    : sql`${lister} = ${companyId}::uuid`;
  const seen = array(printedUuids(seenIds), 'text');
  const fields = sql`
      ${row.id}::text as id,
      ${listingCompanies(resource)} as companies,
      ${keptRow(resource)} as kept`;
  // One statement: a row that moves from another company to this one meanwhile must be in one of
  // the two.
  const others = sql`
    union all
    select theirs.*
    from ${alsoListed} listed
      cross join lateral (
        select ${fields}
        from ${tableOf(resource)} ${row}
        where ${row.id} = ${idOf(resource, sql`listed.record_id`)}
          and ${listerOf(sql`${row}`)} <> ${companyId}::uuid
          and ${lives}
          and ${isSince}
      ) theirs
    where listed.company_id = ${companyId}
      and listed.resource = ${resource}
      and not (listed.record_id = any(${seen}))`;
  const { rows } = await db.execute<UnlistedRow>(sql`
    select ${fields}
    from ${tableOf(resource)} ${row}
    where ${lives}
      and ${isSince}
      and ${companyId === null ? sql`true` : isOfCompany}
      and not (${row.id}::text = any(${seen}))
      -- A row without a company is extra, too.
      and (${isAmong(lister, unlisted, 'uuid')}) is not true
      and ${resource === 'sites' ? hasListOfSites : sql`true`}${isListed ? others : sql``}`);
  return rows;
}

/** Whether a meter's `row` is live and has readings. Readings of a deleted meter do not count. */
const hasReadings = sql`${row.deletedAt} is null
      and exists (
        select
        from ${intervals}
        where ${intervals.meterId} = ${row.id}
      )`;

/** Lists a company's live meters with readings that the service did not list (`unlistedRows`). */
export const unlistedMeters = async (
  db: Executor,
  companyId: string,
  seenIds: readonly string[],
): Promise<UnlistedRow[]> =>
  await unlistedRows(db, 'meters', companyId, seenIds, { lives: hasReadings });

/** A row that no audited listing should contain; for readings, their meter. */
export interface StrayRow extends Record<string, unknown> {
  readonly id: string;
  readonly companyId: string | null;
  readonly kept: boolean;
}

/** Readings are represented by the rows of their meters. */
const rowsOf = (resource: CompanyResource) => (resource === 'intervals' ? 'meters' : resource);

/** Whether a row is live. Rows that only events wrote do not count: the catch-up checks them. */
const lives = (resource: CompanyResource): SQL =>
  resource === 'intervals' ? hasReadings : sql`${row.raw} is not null and ${row.deletedAt} is null`;

/**
 * Reads live rows that companies list that are not audited, unless an audited company lists their
 * records, too. The owners are read from the index, because most owners have many rows.
 */
export async function strayRows(
  db: Executor,
  resource: CompanyResource,
  audited: readonly string[],
): Promise<StrayRow[]> {
  const rows = rowsOf(resource);
  const table = tableOf(rows);
  const others = array(audited, 'uuid');
  const found = await db.execute<StrayRow>(sql`
    select distinct theirs.id, lister.id as "companyId", theirs.kept
    from (
        select distinct company_id as id from ${table} where company_id <> all(${others})
        union all
        select distinct listed_by from ${table} where listed_by <> all(${others})
      ) lister
      cross join lateral (
        select ${row.id}::text as id, ${keptRow(rows)} as kept
        from ${table} ${row}
        where ${isListedBy(sql`lister.id`)}
          and ${lives(resource)}
          and not exists (
            select from ${alsoListed} listed
            where listed.resource = ${rows}
              and listed.record_id = ${row.id}::text
              and listed.company_id = any(${others})
            offset 0
          )
        -- Looked up for each owner: as a join, it compares every owner with every row.
        offset 0
      ) theirs
    order by theirs.id`);
  return found.rows;
}

/** Reads the ids of live rows without a company; for readings, of meters with readings. */
export async function ownerlessRows(db: Executor, resource: CompanyResource): Promise<string[]> {
  const { rows } = await db.execute<{ id: string }>(sql`
    select ${row.id}::text as id
    from ${tableOf(rowsOf(resource))} ${row}
    where ${row.companyId} is null
      and ${lives(resource)}`);
  return rows.map(({ id }) => id);
}

/**
 * Lists live companies that the service's list need not contain: companies that the settings name,
 * and companies that the list never contained although records of them were read.
 */
export async function unlistedCompanies(db: Executor, configured: readonly string[]) {
  const { id, raw, deletedAt } = companies;
  const isNamed = isAmong(id, configured, 'uuid');
  const unlisted = await db
    .select({ id, isNamed: sql<boolean>`${isNamed}`, wasRead: sql<boolean>`${recordRead(id)}` })
    .from(companies)
    .where(and(isNull(deletedAt), or(isNull(raw), isNamed)))
    .orderBy(id);
  return unlisted.filter((company) => company.isNamed || company.wasRead);
}

/** Lists live companies, for a service that does not list companies. */
export async function liveCompanies(db: Executor): Promise<string[]> {
  const live = await db
    .select({ id: companies.id })
    .from(companies)
    .where(isNull(companies.deletedAt))
    .orderBy(companies.id);
  return live.map(({ id }) => id);
}
