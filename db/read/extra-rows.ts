import { and, eq, gte, isNotNull, isNull, not, notExists, or, type SQL, sql } from 'drizzle-orm';
import { type PgColumn, unionAll } from 'drizzle-orm/pg-core';
import type { CompanyResource } from '../../contract/endpoints.ts';
import { array, isAmong, literal, printedUuids } from '../connection/arrays.ts';
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
  resources,
  row,
  tableOf,
} from '../resources.ts';
import { alsoListed, deletes } from '../schema/reads.ts';
import { companies, intervals } from '../schema/utility.ts';

const id = sql<string>`${sql`${row.id}`}::text`;

/** A row that a listing should contain but did not. */
export type UnlistedRow = Awaited<ReturnType<typeof unlistedRows>>[number];

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
    lives = isNull(row.deletedAt),
  }: {
    readonly since?: string | null;
    /** Companies that no list contains. */
    readonly unlisted?: readonly string[];
    readonly lives?: SQL | undefined;
  } = {},
) {
  const lister = resource === 'companies' ? sql`${row.id}` : judgedBy(resource);
  const isListed = companyId !== null && isListedByCompany(resource);
  const isDue = and(
    lives,
    since === null || !isVersioned(resource) ? undefined : gte(row.updated, since),
  );
  const seen = printedUuids(seenIds);
  const fields = {
    id: id.as('unlisted_id'),
    companies: listingCompanies(resource).as('companies'),
    kept: keptRow(resource).as('kept'),
  };
  const rows = sql`${tableOf(resource)} ${row}`;
  const own = db
    .select(fields)
    .from(rows)
    .where(
      and(
        isDue,
        companyId === null
          ? undefined
          : isListed
            ? isListedBy(sql`${companyId}::uuid`)
            : sql`${lister} = ${companyId}::uuid`,
        not(isAmong(id, seen)),
        // A row without a company is extra, too.
        sql`(${isAmong(lister, unlisted, 'uuid')}) is not true`,
        resource === 'sites' ? hasListOfSites : undefined,
      ),
    );
  if (!isListed) return await own;
  const theirs = db
    .select(fields)
    .from(rows)
    .where(
      and(
        eq(row.id, idOf(resource, sql`${alsoListed.recordId}`)),
        sql`${listerOf(sql`row`)} <> ${companyId}::uuid`,
        isDue,
      ),
    )
    .as('theirs');
  const others = db
    .select({ id: theirs.id, companies: theirs.companies, kept: theirs.kept })
    .from(alsoListed)
    .crossJoinLateral(theirs)
    .where(
      and(
        eq(alsoListed.companyId, companyId),
        eq(alsoListed.resource, resource),
        not(isAmong(alsoListed.recordId, seen)),
      ),
    );
  // One statement: a row that moves from another company to this one meanwhile must be in one of
  // the two.
  return await own.unionAll(others);
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
export type StrayRow = Awaited<ReturnType<typeof strayRows>>[number];

/** Readings are represented by the rows of their meters. */
const rowsOf = (resource: CompanyResource) => (resource === 'intervals' ? 'meters' : resource);

/** Whether a row is live. Rows that only events wrote do not count: the catch-up checks them. */
const lives = (resource: CompanyResource): SQL | undefined =>
  resource === 'intervals' ? hasReadings : and(isNotNull(row.raw), isNull(row.deletedAt));

/**
 * Reads live rows that companies list that are not audited, unless an audited company lists their
 * records, too. The owners are read from the index, because most owners have many rows.
 */
export async function strayRows(
  db: Executor,
  resource: CompanyResource,
  audited: readonly string[],
) {
  const rows = rowsOf(resource);
  const { companyId, listedBy } = resources[rows].table as typeof row;
  const unaudited = (company: PgColumn) =>
    db
      .selectDistinct({ id: sql<string | null>`${company}`.as('id') })
      .from(resources[rows].table)
      .where(sql`${company} <> all(${array(audited, 'uuid')})`);
  const lister = unionAll(unaudited(companyId), unaudited(listedBy)).as('lister');
  const alsoAudited = db
    .select({ one: sql`1` })
    .from(alsoListed)
    .where(
      and(
        eq(alsoListed.resource, rows),
        eq(alsoListed.recordId, id),
        isAmong(alsoListed.companyId, audited, 'uuid'),
      ),
    )
    .offset(literal(0));
  const theirs = db
    .select({ id: id.as('stray_id'), kept: keptRow(rows).as('kept') })
    .from(sql`${tableOf(rows)} ${row}`)
    .where(and(isListedBy(sql`lister.id`), lives(resource), notExists(alsoAudited)))
    // Looked up for each owner: as a join, it compares every owner with every row.
    .offset(literal(0))
    .as('theirs');
  return await db
    .selectDistinct({ id: theirs.id, companyId: lister.id, kept: theirs.kept })
    .from(lister)
    .crossJoinLateral(theirs)
    .orderBy(theirs.id);
}

/** Reads the ids of live rows without a company; for readings, of meters with readings. */
export async function ownerlessRows(db: Executor, resource: CompanyResource): Promise<string[]> {
  const rows = await db
    .select({ id })
    .from(sql`${tableOf(rowsOf(resource))} ${row}`)
    .where(and(isNull(row.companyId), lives(resource)));
  return rows.map((stray) => stray.id);
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
