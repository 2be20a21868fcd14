import { and, eq, type SQLWrapper, sql } from 'drizzle-orm';
import type { Executor } from '../connection/connect.ts';
import { companyOf, namesOfRecords, type RecordKey } from '../records/names.ts';
import { documents, usageData } from '../schema/utility.ts';
import { waits } from './absence.ts';
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
