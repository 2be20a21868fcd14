import { createHash } from 'node:crypto';
import { type SQL, sql } from 'drizzle-orm';
import { canonicalUuid } from '../../contract/ids.ts';
import { array, unnested } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { rejectedRecords } from '../schema/metersync.ts';

export interface RejectedRecord {
  readonly resource: string;
  /** The company that lists it. */
  readonly companyId: string | null;
  readonly id: string | null;
  readonly text: string;
  readonly error: string;
}

/** Shortens a text to what is kept, in characters that Postgres can hold. */
const printable = (text: string, length = 200): string =>
  text.replaceAll('\0', '\\0').toWellFormed().slice(0, length);

/** Longest reason, in characters: it may quote the record. */
const reasonMax = 1_000;

/** The id of a refused record, as events and tables have it. */
export const refusedId = (id: string): string => canonicalUuid(id) ?? printable(id);

/** The id under which a record is refused: without one, the digest of its text. */
export const refusedAs = ({ id, text }: Pick<RejectedRecord, 'id' | 'text'>): string =>
  id === null ? createHash('sha256').update(text).digest('hex') : refusedId(id);

/** Stores a record as the service sent it, with the reason why no table can store it. */
export async function rejectRecord(db: Executor, rejected: RejectedRecord): Promise<void> {
  await rejectRecords(db, [rejected]);
}

/** Stores many refused records; of several with one id, the last. */
export async function rejectRecords(
  db: Executor,
  rejected: readonly RejectedRecord[],
): Promise<void> {
  await db.execute(sql`
    insert into ${rejectedRecords} (resource, record_id, company_id, error, record)
    select distinct on (resource, id) resource, id, company_id, error, record
    from ${unnested(
      'refused',
      rejected.map((record, place) => ({ ...record, place })),
      [
        ['resource', 'text', ({ resource }) => resource],
        ['id', 'text', refusedAs],
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

/** Records that a read found without error. */
interface ReadRecords {
  readonly resource: string;
  readonly ids: readonly (string | null)[];
  readonly readAt: string;
}

/**
 * Deletes refusals of records that were read without error since: a statement, or a step of one.
 */
export function clearingRejections({ resource, ids, readAt }: ReadRecords): SQL {
  const refusedIds = ids.flatMap((id) => (id === null ? [] : [refusedId(id)]));
  return sql`
    delete from ${rejectedRecords}
    where ${rejectedRecords.resource} = ${resource}
      -- A subquery counts as ten ids: before 17 Postgres would rather read the table than seek many.
      and ${rejectedRecords.recordId} = any(array(select unnest(${array(refusedIds, 'text')})))
      and ${rejectedRecords.rejectedAt} < ${readAt}::timestamptz`;
}

/** The id of a refused reading: its meter and start, as readings have no usable id. */
export const readingOf = (meterId: string, start: string): string => `${meterId}@${start}`;

/**
 * Deletes refused readings of a meter after a range or the whole meter was read again. Readings that are
 * still refused have been stored again.
 */
export async function clearRejectedReadings(
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
  // Not prepared: the index serves a prefix only if the plan knows it.
  await db.execute(sql`
    delete from ${rejectedRecords}
    where ${resource} = 'intervals'
      and starts_with(${recordId}, ${prefix})
      and ${rejectedAt} < ${readAt}::timestamptz
      ${within}`);
}
