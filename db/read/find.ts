import {
  type AnyColumn,
  and,
  desc,
  eq,
  ilike,
  inArray,
  isNotNull,
  or,
  type SQL,
  sql,
} from 'drizzle-orm';
import { unionAll } from 'drizzle-orm/pg-core';
import { canonicalUuid } from '../../contract/values.ts';
import { isWhole } from '../backfill/runs.ts';
import type { Executor } from '../connection/connect.ts';
import { companyOf, namesOfRecords } from '../records/names.ts';
import { journal } from '../schema/metersync.ts';
import { runs } from '../schema/reads.ts';
import {
  companies,
  connections,
  documentNumbers,
  documents,
  meters,
  sites,
  usageData,
} from '../schema/utility.ts';

/** Kinds of ids that the search knows. */
export const foundKinds = [
  'event',
  'run',
  'company',
  'site',
  'document',
  'connection',
  'meter',
] as const;
export type FoundKind = (typeof foundKinds)[number];

/** What was found. `name` is what people call it, and `company` the name of its company, if it has one. */
export type Found = Awaited<ReturnType<typeof findById>>[number];

const found = (
  kind: FoundKind,
  id: AnyColumn,
  name: AnyColumn | SQL | SQL.Aliased = sql`null`,
  companyId: AnyColumn | SQL = sql`null`,
) => ({
  kind: sql<FoundKind>`${kind}::text`,
  id: sql<string>`${sql`${id}`}::text`,
  name: sql<string | null>`${sql`${name}`}::text`,
  companyId: sql<string | null>`${sql`${companyId}`}::uuid`,
});

/** Adds the names of companies. */
async function withCompanies<Row extends { companyId: string | null }>(
  db: Executor,
  rows: readonly Row[],
) {
  const nameOf = await namesOfRecords(db, rows.flatMap(companyOf));
  return rows.map((row) => ({ ...row, company: companyOf(row).map(nameOf)[0] ?? null }));
}

/** Finds everything with the given id, and companies to which the customer gave this id. */
export async function findById(db: Executor, given: string) {
  const id = canonicalUuid(given) ?? null;
  const hasId = (column: AnyColumn) => sql`${column} = ${id}::uuid`;
  const company = found('company', companies.id, companies.name);
  const rows = await unionAll(
    db
      .select(found('event', journal.id, journal.type, journal.companyId))
      .from(journal)
      .where(eq(journal.id, given)),
    db
      .select(found('run', runs.runId, runs.kind))
      .from(runs)
      .where(and(hasId(runs.runId), isWhole(runs))),
    db.select(company).from(companies).where(hasId(companies.id)),
    db.select(company).from(companies).where(eq(companies.externalId, given)).limit(10),
    db
      .select(found('site', sites.id, sites.name, sites.companyId))
      .from(sites)
      .where(hasId(sites.id)),
    db
      .select(found('document', documents.id, undefined, documents.companyId))
      .from(documents)
      .where(hasId(documents.id)),
    db
      .select(found('connection', connections.id, connections.datasource, connections.companyId))
      .from(connections)
      .where(hasId(connections.id)),
    db
      .select(found('meter', meters.id, undefined, meters.companyId))
      .from(meters)
      .where(eq(meters.id, given)),
  );
  return await withCompanies(db, rows);
}

/** Maximum number of rows of each kind that a search shows. */
const foundMax = 20;

/**
 * Finds bills by the number of their invoice or account, meters by one of their numbers, and
 * companies, sites and connections by a part of their names. Bills have an index, and the bills of an
 * account are found by its meters: other tables are read as a whole, within the statement time-out of
 * a person's search.
 */
export async function findByName(db: Executor, given: string): Promise<Found[]> {
  const part = partOf(given);
  const { raw } = documents;
  const numbers = db
    .select({
      listed: sql<string>`string_agg(number ->> 'value', ' ')`.as('listed'),
      hasIt: sql<boolean>`bool_or(number ->> 'value' = ${given})`.as('has_it'),
    })
    .from(sql`jsonb_array_elements(metersync.elements(${meters.raw} -> 'identifiers')) number`)
    .as('numbers');
  const account = JSON.stringify([{ name: 'ACCOUNT', value: given }]);
  const bills = db
    .select({ id: documents.id })
    .from(documents)
    .where(sql`${documentNumbers} @> array[${given}]`)
    .union(
      db
        .select({ id: sql<string>`${usageData.documentId}` })
        .from(meters)
        .innerJoin(usageData, eq(usageData.meterId, meters.id))
        .where(sql`metersync.elements(${meters.raw} -> 'identifiers') @> ${account}::jsonb`),
    );
  const bill = sql`concat_ws(', ', ${raw} ->> 'utilityCompany', ${raw} ->> 'invoiceId', ${raw} ->> 'billDate')`;
  const rows = await unionAll(
    db
      .select(found('company', companies.id, companies.name))
      .from(companies)
      .where(ilike(companies.name, part))
      .orderBy(companies.name)
      .limit(foundMax),
    db
      .select(found('site', sites.id, sites.name, sites.companyId))
      .from(sites)
      .where(and(ilike(sites.name, part), isNotNull(sites.companyId)))
      .orderBy(sites.name)
      .limit(foundMax),
    db
      .select(found('connection', connections.id, connections.datasource, connections.companyId))
      .from(connections)
      .leftJoin(companies, eq(companies.id, connections.companyId))
      .where(ilike(connections.datasource, part))
      .orderBy(connections.datasource, companies.name)
      .limit(foundMax),
    db
      .select(found('meter', meters.id, numbers.listed, meters.companyId))
      .from(meters)
      .crossJoinLateral(numbers)
      .where(sql`${numbers.hasIt}`)
      .orderBy(meters.id)
      .limit(foundMax),
    db
      .select(found('document', documents.id, bill, documents.companyId))
      .from(documents)
      .where(inArray(documents.id, bills))
      .orderBy(sql`${documents.updated} desc nulls last`)
      .limit(foundMax),
  );
  return await withCompanies(db, rows);
}

/**
 * Companies that a text may mean: by id, by the customer's own id, or by a part of the name. `isExact` says
 * whether the text is the whole id or name; such companies come first.
 */
export async function companiesMeant(db: Executor, given: string) {
  const part = partOf(given);
  const { id, name, externalId } = companies;
  const uuid = canonicalUuid(given) ?? null;
  const isId = or(sql`${id} = ${uuid}::uuid`, eq(externalId, given));
  const isExact = sql<boolean>`coalesce(${isId}, false) or coalesce(lower(${name}) = lower(${given}), false)`;
  return await db
    .select({ id, name, isExact })
    .from(companies)
    .where(or(isId, ilike(name, part)))
    .orderBy(desc(isExact), name, id)
    .limit(foundMax);
}

/** A pattern for texts that contain the given text. */
const partOf = (given: string): string => `%${given.replaceAll(/[\\%_]/g, String.raw`\$&`)}%`;
