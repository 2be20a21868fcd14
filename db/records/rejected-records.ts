import { createHash } from 'node:crypto';
import { type SQL, sql } from 'drizzle-orm';
import { canonicalUuid } from '../../contract/ids.ts';
import { array, unnested } from '../arrays.ts';
import type { Executor } from '../connect.ts';
import { plannedEachTime } from '../prepare.ts';
import { rejectedRecords } from '../schema/metersync.ts';

export interface RejectedRecord {
  readonly resource: string;
  /** Company in whose listing it stands. */
  readonly companyId: string | null;
  readonly id: string | null;
  readonly text: string;
  readonly error: string;
}

/** As much of a text as is kept, as Postgres can hold it. */
const printable = (text: string, length = 200): string =>
  text.replaceAll('\0', '\\0').toWellFormed().slice(0, length);

/** Characters of a reason: it may quote what a record says. */
const reasonMax = 1_000;

/** By what a record is known when it is refused: its id, as events and tables have it. */
export const refusedId = (id: string): string => canonicalUuid(id) ?? printable(id);

/** Keeps a record, as the service sent it, with the reason why it is in no table. */
export async function rejectRecord(db: Executor, rejected: RejectedRecord): Promise<void> {
  await rejectRecords(db, [rejected]);
}

/** The same for many: of those that are known by one id the last is kept. */
export async function rejectRecords(
  db: Executor,
  rejected: readonly RejectedRecord[],
): Promise<void> {
  const idOf = ({ id, text }: RejectedRecord): string =>
    id === null ? createHash('sha256').update(text).digest('hex') : refusedId(id);
  await db.execute(sql`
    insert into ${rejectedRecords} (resource, record_id, company_id, error, record)
    select distinct on (resource, id) resource, id, company_id, error, record
    from ${unnested(
      'refused',
      rejected.map((one, place) => ({ ...one, place })),
      [
        ['resource', 'text', ({ resource }) => resource],
        ['id', 'text', idOf],
        ['company_id', 'uuid', ({ companyId }) => companyId],
        ['error', 'text', ({ error }) => printable(error, reasonMax)],
        ['record', 'text', ({ text }) => text],
        ['place', 'int', ({ place }) => place],
      ],
    )}
    order by resource, id, place desc
    on conflict (resource, record_id) do update set
      error = excluded.error,
      record = excluded.record,
      rejected_at = excluded.rejected_at`);
}

/** Records that a read found in order. */
export interface Mended {
  readonly resource: string;
  readonly ids: readonly (string | null)[];
  readonly readAt: string;
}

/**
 * Forgets what Postgres refused before of records that a read found in order: a statement, or a
 * step of one.
 */
export function forgettingRejected({ resource, ids, readAt }: Mended): SQL {
  const known = ids.flatMap((id) => (id === null ? [] : [refusedId(id)]));
  return sql`
    delete from ${rejectedRecords}
    where ${rejectedRecords.resource} = ${resource}
      and ${rejectedRecords.recordId} = any(${array(known, 'text')})
      and ${rejectedRecords.rejectedAt} < ${readAt}::timestamptz`;
}

export async function forgetRejected(db: Executor, mended: Mended): Promise<void> {
  await db.execute(forgettingRejected(mended));
}

/** By what the usage that a document's own record tells is known when it is refused. */
export const usageOfDocument = (documentId: string): string => `of document ${documentId}`;

/** Readings have no ids of their own that serve: they are known by their meter and their start. */
export const readingOf = (meterId: string, start: string): string => `${meterId}@${start}`;

/**
 * Forgets refused readings of a meter after all of a range, or of the meter, was read again: what
 * is still wrong is kept anew.
 */
export async function forgetRejectedReadings(
  db: Executor,
  {
    meterId,
    start,
    end,
  }: { readonly meterId: string; readonly start?: string; readonly end?: string },
  readAt: string,
): Promise<void> {
  const prefix = readingOf(printable(meterId), '');
  const { resource, recordId, rejectedAt } = rejectedRecords;
  const day = sql`substr(${recordId}, ${prefix.length + 1}::int, 10)`;
  const within =
    start === undefined || end === undefined
      ? sql``
      : sql`and ${day} between ${start.slice(0, 10)} and ${end.slice(0, 10)}`;
  // The index finds a beginning of a text only where the plan knows it.
  await db.execute(sql`
    ${plannedEachTime}
    delete from ${rejectedRecords}
    where ${resource} = 'intervals'
      and starts_with(${recordId}, ${prefix})
      and ${rejectedAt} < ${readAt}::timestamptz
      ${within}`);
}
