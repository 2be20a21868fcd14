import { and, eq, isNotNull, isNull, notExists, type SQL, sql } from 'drizzle-orm';
import type { CompanyResource } from '../../contract/endpoints.ts';
import { array, isAmong, literal } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { row } from '../deletes/tombstone.ts';
import { resources, tableOf } from '../resources.ts';
import { alsoListed } from '../schema/metersync.ts';
import { hasReadings } from './compare-readings.ts';

/** A row that no audited listing should contain; for readings, their meter. */
export interface StrayRow {
  readonly id: string;
  readonly companyId: string | null;
}

/** Readings are represented by the rows of their meters. */
const rowsOf = (resource: CompanyResource) => (resource === 'intervals' ? 'meters' : resource);

/** Whether a row is live. Rows that only events wrote are claims, which the catch-up decides. */
const lives = (resource: CompanyResource): SQL | undefined =>
  resource === 'intervals' ? hasReadings : and(isNotNull(row.raw), isNull(row.deletedAt));

const id = sql<string>`${row.id}::text`;

/**
 * Reads live rows of companies that are not among the audited companies, unless one of these also lists them;
 * for readings, the meters that have any. The owners are read from the index, because most have many rows.
 */
export async function strayRows(
  db: Executor,
  resource: CompanyResource,
  audited: readonly string[],
): Promise<StrayRow[]> {
  const rows = rowsOf(resource);
  const { companyId } = resources[rows].table as typeof row;
  const owner = db
    .selectDistinct({ id: companyId })
    .from(resources[rows].table)
    .where(sql`${companyId} <> all(${array(audited, 'uuid')})`)
    .as('owner');
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
    .select({ id: id.as('stray_id') })
    .from(sql`${tableOf(rows)} ${row}`)
    .where(and(eq(row.companyId, owner.id), lives(resource), notExists(alsoAudited)))
    .offset(literal(0))
    .as('theirs');
  return await db
    .select({ id: theirs.id, companyId: owner.id })
    .from(owner)
    .crossJoinLateral(theirs)
    .orderBy(theirs.id);
}

/** Reads the ids of live rows without a company; for readings, of meters that have any. */
export async function ownerlessRows(db: Executor, resource: CompanyResource): Promise<string[]> {
  const rows = await db
    .select({ id })
    .from(sql`${tableOf(rowsOf(resource))} ${row}`)
    .where(and(isNull(row.companyId), lives(resource)));
  return rows.map((stray) => stray.id);
}
