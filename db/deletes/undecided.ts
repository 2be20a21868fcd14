import { and, count, eq, gt, sql } from 'drizzle-orm';
import type { Undecided } from '../../health/measured.ts';
import type { Executor } from '../connection/connect.ts';
import { waits } from './absence.ts';
import { billOf } from './list-rows.ts';
import { note, rowsOfNote } from './tombstone.ts';

/** Above this number of bills their cost is not reported, because each record has to be read for it. */
const billsMax = 1_000;

/** Sums up the rows that wait for a decision, from at most `most` notes; null if no row waits. */
export async function readUndecided(db: Executor, most: number): Promise<Undecided | null> {
  const { resource, companyId, reason } = note;
  const undecided = db
    .select({ resource, companyId, reason, rows: rowsOfNote.as('rows') })
    .from(note)
    .where(waits)
    .orderBy(companyId, resource)
    .limit(most)
    .as('undecided');
  const found = await db
    .select({
      resource: undecided.resource,
      rows: sql<number>`sum(${undecided.rows})::int`,
      companies: sql<string[]>`coalesce(
        array_agg(distinct ${undecided.companyId}::text)
          filter (where ${undecided.companyId} is not null),
        '{}'
      )`,
      listed: sql<number>`coalesce(sum(${undecided.rows}) filter (where ${undecided.reason} = 'listed'), 0)::int`,
    })
    .from(undecided)
    .groupBy(undecided.resource)
    .orderBy(undecided.resource);
  if (found.length === 0) return null;
  const bills = found.find((of) => of.resource === 'documents')?.rows ?? 0;
  return {
    byResource: found.map((of) => ({ resource: of.resource, rows: of.rows })),
    companies: new Set(found.flatMap(({ companies }) => companies)).size,
    listedAsDeleted: found.reduce((all, { listed }) => all + listed, 0),
    cost: bills === 0 || bills > billsMax ? [] : await readCost(db),
  };
}

async function readCost(db: Executor): Promise<string[]> {
  const bill = billOf(db);
  const total = sql`to_char(sum(metersync.amount(${bill.cost})), 'FM999,999,999,999,990.00')`;
  const costs = await db
    .select({ cost: sql<string>`concat_ws(' ', ${total}, ${bill.currency})` })
    .from(note)
    .crossJoinLateral(bill)
    .where(and(eq(note.resource, 'documents'), waits))
    .groupBy(bill.currency)
    .having(gt(count(bill.cost), 0))
    .orderBy(bill.currency);
  return costs.map(({ cost }) => cost);
}
