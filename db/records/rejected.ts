import { createHash } from 'node:crypto';
import { and, between, lt, sql } from 'drizzle-orm';
import { canonicalUuid } from '../../contract/values.ts';
import { excluded, unnested } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { rejectedRecords } from '../schema/reads.ts';

export interface RejectedRecord {
  readonly resource: string;
  /** The company that lists it. */
  readonly companyId: string | null;
  readonly id: string | null;
  readonly text: string;
  readonly error: string;
}

/** Shortens a text, and replaces characters that Postgres cannot hold. */
const printable = (text: string, length = 200): string =>
  text.replaceAll('\0', '\\0').toWellFormed().slice(0, length);

/** Maximum length of a reason, in characters. A reason may quote the record. */
const reasonMax = 1_000;

/** The id of a refused record, spelled as in events and tables. */
export const refusedId = (id: string): string => canonicalUuid(id) ?? printable(id);

/** The id under which a refused record is stored: its id, or else the digest of its text. */
export const refusedAs = ({ id, text }: Pick<RejectedRecord, 'id' | 'text'>): string =>
  id === null ? createHash('sha256').update(text).digest('hex') : refusedId(id);

/** Stores refused records as sent, with the reasons; of several with one id, the last. */
export async function rejectRecords(
  db: Executor,
  rejected: readonly RejectedRecord[],
): Promise<void> {
  const { resource, recordId, error, record, rejectedAt } = rejectedRecords;
  const byId = new Map(rejected.map((one) => [`${one.resource}/${refusedAs(one)}`, one]));
  await db
    .insert(rejectedRecords)
    .select((select) =>
      select
        .select({
          resource: sql`resource`.as('resource'),
          recordId: sql`id`.as('record_id'),
          companyId: sql`company_id`.as('company_id'),
          error: sql`error`.as('error'),
          record: sql`record`.as('record'),
          rejectedAt: sql`now()`.as('rejected_at'),
        })
        .from(
          unnested(
            'refused',
            [...byId.values()],
            [
              ['resource', 'text', ({ resource }) => resource],
              ['id', 'text', refusedAs],
              ['company_id', 'uuid', ({ companyId }) => companyId],
              ['error', 'text', ({ error }) => printable(error, reasonMax)],
              ['record', 'text', ({ text }) => text],
            ],
          ),
        )
        .orderBy(sql`resource`, sql`id`),
    )
    .onConflictDoUpdate({
      target: [resource, recordId],
      set: excluded({ error, record, rejectedAt }),
    });
}

/** The id of a refused reading: its meter and start, because readings have no usable id. */
export const readingOf = (meterId: string, start: string): string => `${meterId}@${start}`;

/** Deletes a meter's refused readings after a read, except readings that it refused again. */
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
  // The index serves a prefix only if the planner knows the prefix.
  await db.delete(rejectedRecords).where(
    and(
      // A literal, because a plan for any value would read the whole table.
      sql`${resource} = 'intervals'`,
      sql`starts_with(${recordId}, ${prefix})`,
      lt(rejectedAt, readAt),
      start !== undefined && end !== undefined
        ? between(day, start.slice(0, 10), end.slice(0, 10))
        : undefined,
    ),
  );
}
