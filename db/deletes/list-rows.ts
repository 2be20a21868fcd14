import { and, count, desc, eq, gt, inArray, max, type SQLWrapper, sql } from 'drizzle-orm';
import type { Undecided } from '../../health/measured.ts';
import type { Executor } from '../connection/connect.ts';
import { companyOf, namesOfRecords, type RecordKey } from '../records/names.ts';
import { operations } from '../schema/metersync.ts';
import { documents, usageData } from '../schema/utility.ts';
import { keeps, waits } from './absence.ts';
import { note, rowsOfNote, usage } from './tombstone.ts';

/** A row that a run found missing, with what a person has to know to decide on it. */
export type DeletedRow = Awaited<ReturnType<typeof listDeletedRows>>[number];

/** Number of rows of a resource in one state, and their cost in one currency if they have any. */
export type SumOfDeleted = Awaited<ReturnType<typeof sumDeletedRows>>[number];

/** The bill of a note about a document or its usage. */
export const billOf = (db: Executor) =>
  db
    .select({
      invoiceId: sql<string | null>`b.invoice_id`.as('invoice_id'),
      provider: sql<string | null>`b.provider`.as('provider'),
      day: sql`coalesce(b.bill_date, b.end_date, b.start_date)`.as('day'),
      cost: sql`coalesce(b.current_charges, b.total_charges)`.as('cost'),
      currency: sql<string | null>`b.currency`.as('currency'),
    })
    .from(documents)
    .crossJoinLateral(sql`analytics.read_bill(${documents.raw}) b`)
    .where(sql`${documents.id} = case ${note.resource}
      when 'documents' then metersync.uuid_of(${note.recordId})
      when 'usageData' then (select ${usage.documentId} ${ofUsage})
    end`)
    .as('bill');

const ofUsage = sql`
  from ${usageData} ${usage}
  where ${note.resource} = 'usageData'
    and ${usage.id} = metersync.uuid_of(${note.recordId})`;

/** The cost of a document. Usage has none here, or the cost of its document would count twice. */
const costOf = (cost: SQLWrapper) => sql`case when ${note.resource} = 'documents' then ${cost} end`;

/** Whether a run found a note's row missing, unless it is quarantined and no longer waits. */
const isFoundBy = (runId: string) =>
  and(eq(note.runId, runId), sql`(${note.state} <> 'quarantined' or ${waits})`);

/** Lists all rows that a run found missing, or at most `limit` of them. */
export async function listDeletedRows(db: Executor, runId: string, limit: number | null = null) {
  const bill = billOf(db);
  const { resource, recordId, meterId, startsFrom, startsBefore } = note;
  const date = sql<string | null>`coalesce(
        to_char(${startsFrom} at time zone 'UTC', 'YYYY-MM-DD HH24:MI')
          || to_char(${startsBefore} at time zone 'UTC', '" to" YYYY-MM-DD HH24:MI "UTC"'),
        (select ${usage.startDate}::text ${ofUsage}),
        ${bill.day}::text
      )`.as('date');
  const found = db
    .select({
      resource,
      /** The id of the record, or of the meter whose readings are missing. */
      id: sql<string>`coalesce(${meterId}, ${recordId})`,
      state: note.state,
      /** Whether the service lists it as deleted; otherwise it is absent from its listing. */
      listedAsDeleted: sql<boolean>`${note.reason} = 'listed'`,
      companyId: note.companyId,
      name: bill.invoiceId,
      provider: bill.provider,
      /** The day of a bill, the first day of usage, or the range of readings. */
      date,
      cost: sql<string | null>`(${costOf(bill.cost)})::text`,
      currency: bill.currency,
      readings: note.readings,
    })
    .from(note)
    .leftJoinLateral(bill, sql`true`)
    .where(isFoundBy(runId))
    .orderBy(resource, sql`${date} desc nulls last`, recordId)
    .$dynamic();
  const rows = await (limit === null ? found : found.limit(limit));
  const subjectOf = (row: RecordKey): RecordKey => ({
    resource: row.resource === 'intervals' ? 'meters' : row.resource,
    id: row.id,
  });
  const nameOf = await namesOfRecords(
    db,
    rows.flatMap((row) => [subjectOf(row), ...companyOf(row)]),
  );
  return rows.map((row) => ({
    ...row,
    /** The invoice of a bill or usage, a connection's provider, a meter's number, or a name. */
    name: row.name ?? nameOf(subjectOf(row)),
    company: companyOf(row).map(nameOf)[0] ?? null,
  }));
}

/** Adds up all rows that a run found missing, by resource, state and currency. */
export async function sumDeletedRows(db: Executor, runId: string) {
  const bill = billOf(db);
  const { resource, state } = note;
  const currency = sql<
    string | null
  >`case when ${resource} = 'documents' then ${bill.currency} end`;
  return await db
    .select({
      resource,
      state,
      rows: sql<number>`sum(${rowsOfNote})::int`,
      listedAsDeleted: sql<number>`coalesce(sum(${rowsOfNote}) filter (where ${note.reason} = 'listed'), 0)::int`,
      cost: sql<string | null>`sum(${costOf(bill.cost)})::text`,
      currency,
    })
    .from(note)
    .leftJoinLateral(bill, sql`true`)
    .where(isFoundBy(runId))
    .groupBy(sql`1, 2, 6`)
    .orderBy(sql`1, 2, 6`);
}

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

/** A decision by which rows stay although the service no longer has them. */
export type KeptBy = Awaited<ReturnType<typeof readKeptBy>>[number];

/** Reads the decisions that keep rows of a company, or of all companies, the newest first. */
export async function readKeptBy(db: Executor, companyId?: string) {
  const decision = ['deletes reject', 'deletes undo'] as const;
  // The name of the table is written out, because Drizzle leaves it out here.
  const actor = db
    .select({ actor: operations.actor })
    .from(operations)
    .where(
      and(
        inArray(operations.action, [...decision]),
        sql`${operations.target} ->> 'run' = note.run_id::text`,
      ),
    )
    .orderBy(desc(operations.id))
    .limit(1);
  const decidedAt = max(note.decidedAt);
  return await db
    .select({
      runId: note.runId,
      state: note.state,
      /** Who decided, according to the log of operations; null if the log does not say. */
      by: sql<string | null>`(${actor})`,
      at: decidedAt,
      rows: sql<number>`sum(${rowsOfNote})::int`,
    })
    .from(note)
    .where(and(keeps, companyId === undefined ? undefined : eq(note.companyId, companyId)))
    .groupBy(note.runId, note.state)
    .orderBy(desc(decidedAt), note.runId);
}
