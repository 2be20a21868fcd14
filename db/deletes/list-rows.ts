import { eq, type SQL, sql } from 'drizzle-orm';
import type { Executor } from '../connection/connect.ts';
import { namesOfRecords } from '../read/names.ts';
import { deletes } from '../schema/metersync.ts';
import { documents, usageData } from '../schema/utility.ts';
import { waits } from './explained.ts';
import { note } from './tombstone.ts';

/** A row that a run found missing, with what a person has to know to decide on it. */
export interface DeletedRow {
  readonly resource: string;
  /** The id of the record, or of the meter whose readings it is about. */
  readonly id: string;
  readonly state: string;
  /** Whether the service itself lists it as deleted; otherwise it is absent from its listing. */
  readonly listedAsDeleted: boolean;
  readonly companyId: string | null;
  readonly company: string | null;
  /** The invoice of a bill or of usage, the provider of a connection, the number of a meter, a name. */
  readonly name: string | null;
  readonly provider: string | null;
  /** The day of a bill, the first of usage, or the span of readings. */
  readonly date: string | null;
  /** Of bills. */
  readonly cost: string | null;
  readonly currency: string | null;
  /** How many readings; null for records. */
  readonly readings: number | null;
}

/** A sum over the rows of a resource in a state, and a currency where they have costs. */
export interface SumOfDeleted {
  readonly resource: string;
  readonly state: string;
  readonly rows: number;
  readonly listedAsDeleted: number;
  readonly cost: string | null;
  readonly currency: string | null;
}

/** The document of a note about it, or about its usage. */
const bill = sql`
      left join ${usageData}
        on ${note.resource} = 'usageData'
          and ${usageData.id} = metersync.uuid_of(${note.recordId})
      left join ${documents}
        on ${documents.id} = case ${note.resource}
          when 'documents' then metersync.uuid_of(${note.recordId})
          when 'usageData' then ${usageData.documentId}
        end
      left join lateral analytics.read_bill(${documents.raw}) b on true`;

/** The cost of a document; its usage would add it a second time. */
const costOf: SQL = sql`case
        when ${note.resource} = 'documents' then coalesce(b.current_charges, b.total_charges)
      end`;

/** What a run found missing, except rows that no longer wait. */
const of = (runId: string): SQL =>
  sql`${eq(note.runId, runId)} and (${note.state} <> 'quarantined' or ${waits})`;

/** Lists all that a run found gone, or at most `limit` of it. */
export async function listDeletedRows(
  db: Executor,
  runId: string,
  limit: number | null = null,
): Promise<DeletedRow[]> {
  const { rows } = await db.execute<
    DeletedRow & { meter: string | null } & Record<string, unknown>
  >(sql`
    select
      ${note.resource},
      coalesce(${note.meterId}, ${note.recordId}) as id,
      ${note.state},
      ${note.reason} = 'listed' as "listedAsDeleted",
      ${note.companyId}::text as "companyId",
      b.invoice_id as name,
      b.provider,
      coalesce(
        to_char(${note.startsFrom} at time zone 'UTC', 'YYYY-MM-DD HH24:MI')
          || to_char(${note.startsBefore} at time zone 'UTC', '" to" YYYY-MM-DD HH24:MI "UTC"'),
        ${usageData.startDate}::text,
        coalesce(b.bill_date, b.end_date, b.start_date)::text
      ) as date,
      (${costOf})::text as cost,
      b.currency,
      ${note.readings}::float8 as readings
    from ${deletes} ${note}${bill}
    where ${of(runId)}
    order by ${note.resource}, date desc nulls last, ${note.recordId}
    limit ${limit}`);
  const ofCompany = (id: string) => ({ resource: 'companies', id });
  const ofRow = ({ resource, id }: DeletedRow) => ({
    resource: resource === 'intervals' ? 'meters' : resource,
    id,
  });
  const nameOf = await namesOfRecords(
    db,
    rows.flatMap((one) => [
      ofRow(one),
      ...(one.companyId === null ? [] : [ofCompany(one.companyId)]),
    ]),
  );
  return rows.map((one) => ({
    ...one,
    name: one.name ?? nameOf(ofRow(one)),
    company: one.companyId === null ? null : nameOf(ofCompany(one.companyId)),
  }));
}

/** Adds up all that a run found gone, by resource, state and currency. */
export async function sumDeletedRows(db: Executor, runId: string): Promise<SumOfDeleted[]> {
  const { rows } = await db.execute<SumOfDeleted & Record<string, unknown>>(sql`
    select
      ${note.resource},
      ${note.state},
      sum(coalesce(${note.readings}, 1))::int as rows,
      (sum(coalesce(${note.readings}, 1)) filter (where ${note.reason} = 'listed'))::int
        as "listedAsDeleted",
      sum(${costOf})::text as cost,
      case when ${note.resource} = 'documents' then b.currency end as currency
    from ${deletes} ${note}${bill}
    where ${of(runId)}
    group by 1, 2, 6
    order by 1, 2, 6`);
  return rows.map((row) => ({ ...row, listedAsDeleted: row.listedAsDeleted ?? 0 }));
}
