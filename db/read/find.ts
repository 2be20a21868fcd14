import { type AnyColumn, and, eq, ilike, inArray, isNotNull, type SQL, sql } from 'drizzle-orm';
import { unionAll } from 'drizzle-orm/pg-core';
import { canonicalUuid } from '../../contract/ids.ts';
import { isWhole } from '../backfill/runs.ts';
import type { Executor } from '../connection/connect.ts';
import { journal, runs } from '../schema/metersync.ts';
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
export const foundKinds = ['event', 'run', 'company', 'document', 'connection', 'meter'] as const;
/** A site has no page: it is found with the id of its company. */
export type FoundKind = (typeof foundKinds)[number] | 'site';

/** What was found. `name` is what people call it, if it has a name. */
export type Found = Awaited<ReturnType<typeof findById>>[number];

const found = (kind: FoundKind, id: AnyColumn, name: AnyColumn | SQL = sql`null`) => ({
  kind: sql<FoundKind>`${kind}::text`,
  id: sql<string>`${sql`${id}`}::text`,
  name: sql<string | null>`${sql`${name}`}::text`,
});

/** Finds everything with the given id, and companies to which the customer gave this id. */
export async function findById(db: Executor, given: string) {
  const id = canonicalUuid(given) ?? null;
  const hasId = (column: AnyColumn) => sql`${column} = ${id}::uuid`;
  const company = found('company', companies.id, companies.name);
  return await unionAll(
    db
      .select(found('event', journal.id, journal.type))
      .from(journal)
      .where(eq(journal.id, given)),
    db
      .select(found('run', runs.runId, runs.kind))
      .from(runs)
      .where(and(hasId(runs.runId), isWhole(runs))),
    db.select(company).from(companies).where(hasId(companies.id)),
    db.select(company).from(companies).where(eq(companies.externalId, given)).limit(10),
    db.select(found('document', documents.id)).from(documents).where(hasId(documents.id)),
    db
      .select(found('connection', connections.id, connections.datasource))
      .from(connections)
      .where(hasId(connections.id)),
    db.select(found('meter', meters.id)).from(meters).where(eq(meters.id, given)),
  );
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
  const part = `%${given.replaceAll(/[\\%_]/g, String.raw`\$&`)}%`;
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
  return await unionAll(
    db
      .select(found('company', companies.id, companies.name))
      .from(companies)
      .where(ilike(companies.name, part))
      .orderBy(companies.name)
      .limit(foundMax),
    db
      .select(found('site', sites.companyId, sites.name))
      .from(sites)
      .where(and(ilike(sites.name, part), isNotNull(sites.companyId)))
      .orderBy(sites.name)
      .limit(foundMax),
    db
      .select(
        found(
          'connection',
          connections.id,
          sql`concat_ws(', ', ${connections.datasource}, ${companies.name})`,
        ),
      )
      .from(connections)
      .leftJoin(companies, eq(companies.id, connections.companyId))
      .where(ilike(connections.datasource, part))
      .orderBy(connections.datasource, companies.name)
      .limit(foundMax),
    db
      .select(found('meter', meters.id, sql`concat_ws(', ', ${numbers.listed}, ${companies.name})`))
      .from(meters)
      .crossJoinLateral(numbers)
      .leftJoin(companies, eq(companies.id, meters.companyId))
      .where(sql`${numbers.hasIt}`)
      .orderBy(meters.id)
      .limit(foundMax),
    db
      .select(found('document', documents.id, bill))
      .from(documents)
      .where(inArray(documents.id, bills))
      .orderBy(sql`${documents.updated} desc nulls last`)
      .limit(foundMax),
  );
}
