import { and, eq, exists, gte, isNotNull, isNull, lt, ne, notExists, or, sql } from 'drizzle-orm';
import { recordPolicy } from '../../contract/retry-policy.ts';
import { array, isAmong, literal } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { row, rowsOf } from '../deletes/tombstone.ts';
import { refreshStale } from '../hot/refresh-stale.ts';
import { type Judged, settleJudged } from '../hot/settle-judged.ts';
import { isListedOnlyBy } from '../records/listers.ts';
import { journal, staleRecords } from '../schema/metersync.ts';
import { connections, documents } from '../schema/utility.ts';
import { postpone } from './postpone.ts';
import { eventKind, keyOf, staleOf } from './stale.ts';

/**
 * Settles the events that waited for the given records before the read began. Events whose state or
 * a newer state is in the warehouse are applied, events of deleted records superseded, and events
 * of refused records dead. Other due records back off, unless they moved to another company. The
 * service does not have the `notFound` records: after `notFoundAttemptsMax` attempts they are
 * tombstoned, and their events are `missing`.
 */
export async function settleRecords(
  db: Executor,
  kind: 'connections' | 'documents',
  recordIds: readonly string[],
  readAt: string,
  notFound: readonly string[] = [],
  companyId?: string,
): Promise<{ applied: number; waiting: number }> {
  if (notFound.length > 0) await tombstoneNotFound(db, kind, notFound, readAt, companyId);
  const judged = await settleJudged(db, kind, recordIds, readAt);
  const idsOf = (which: readonly Judged[]): string[] => which.map(({ record_id }) => record_id);
  const applied = judged.filter(({ settled }) => settled > 0).length;
  const left = judged.filter(({ settled, waiting }) => settled === 0 && waiting > 0);
  // Looks up which events of the others still wait: some came during the read, for example.
  const again = judged.filter((one) => !one.done && !left.includes(one));
  if (again.length > 0) await refreshStale(db, eventKind[kind], idsOf(again));
  if (left.length === 0) return { applied, waiting: 0 };
  const reason = {
    code: 'RECORD_NOT_SHOWN',
    message: 'the service does not show the state that this event named',
  } as const;
  const { waiting, givenUp } = await postpone(
    db,
    kind,
    staleOf.records(kind, idsOf(left)),
    reason,
    {
      dueAt: readAt,
      since: readAt,
      attemptsMax: recordPolicy.olderStateAttemptsMax,
      ...(companyId === undefined ? {} : { owner: companyId }),
    },
  );
  if (givenUp.length > 0) await acceptOlder(db, kind, givenUp);
  return { applied, waiting };
}

/**
 * Moves the stale records of documents to the documents' owner, because only its listings contain
 * their usage and meters. Returns the documents whose stale records moved.
 */
export async function moveToCompany(
  db: Executor,
  companyId: string,
  documentIds: readonly string[],
): Promise<string[]> {
  const document = db
    .select({ companyId: sql<string>`${documents.companyId}`.as('owner_now') })
    .from(documents)
    .where(and(eq(documents.id, sql`asked.id`), ne(documents.companyId, companyId)))
    .offset(literal(0))
    .as('document');
  const stale = db
    .select({ key: staleRecords.key })
    .from(staleRecords)
    .where(
      and(
        eq(staleRecords.key, keyOf('document', sql`asked.id`)),
        eq(staleRecords.owner, companyId),
      ),
    )
    .for('update')
    .as('stale');
  const moved = db.$with('moved').as(
    db
      .select({ key: stale.key, companyId: document.companyId })
      .from(sql`unnest(${array([...documentIds].sort(), 'uuid')}) as asked (id)`)
      .crossJoinLateral(document)
      .crossJoinLateral(stale),
  );
  const records = await db
    .with(moved)
    .update(staleRecords)
    .set({ owner: sql`${moved.companyId}::text` })
    .from(moved)
    .where(
      and(
        sql`${staleRecords.key} = any(array(select key from moved))`,
        eq(staleRecords.key, moved.key),
      ),
    )
    .returning({ id: staleRecords.recordId });
  return records.map(({ id }) => id);
}

/**
 * Ends the hints of events that were given up, because the service never returned the state that
 * they named. The rows then show what was read, unless another event still waits.
 */
async function acceptOlder(
  db: Executor,
  kind: 'connections' | 'documents',
  recordIds: readonly string[],
): Promise<void> {
  const table = kind === 'documents' ? documents : connections;
  const waits = db
    .select({})
    .from(journal)
    .where(and(eq(journal.id, table.hintEventId), eq(journal.outcome, 'pending')));
  await db
    .update(table)
    .set({ hintSettledAt: sql`clock_timestamp()`, unreadable: null })
    .where(
      and(
        isAmong(table.id, recordIds, 'uuid'),
        isNotNull(table.hint),
        eq(table.hintDeletes, false),
        isNull(table.deletedAt),
        notExists(waits),
      ),
    );
}

/**
 * Tombstones records that the service has not had for long enough. Records that a later read found
 * are not changed.
 */
async function tombstoneNotFound(
  db: Executor,
  kind: 'connections' | 'documents',
  recordIds: readonly string[],
  readAt: string,
  companyId?: string,
): Promise<void> {
  const table = kind === 'documents' ? documents : connections;
  const { key, owner, errorCode, attempts } = staleRecords;
  const stale = db
    .select({ owner, errorCode, attempts })
    .from(staleRecords)
    .where(eq(key, keyOf(eventKind[kind], sql`${table.id}`)))
    .offset(literal(0))
    .as('stale');
  const longUnseen = db
    .select({})
    .from(stale)
    .where(
      and(
        eq(stale.errorCode, 'RECORD_NOT_SHOWN'),
        gte(stale.attempts, recordPolicy.notFoundAttemptsMax),
        companyId === undefined ? undefined : eq(stale.owner, companyId),
      ),
    )
    .offset(literal(0));
  // The listing of a company says nothing about what another company lists.
  const lacking = (company: string) =>
    db
      .select({})
      .from(rowsOf(kind))
      .where(and(eq(row.id, table.id), or(isNull(row.companyId), isListedOnlyBy(kind, company))))
      .offset(literal(0));
  await db
    .update(table)
    .set({ absentSince: sql`clock_timestamp()`, absentBy: 'not_found' })
    .where(
      and(
        isAmong(table.id, recordIds, 'uuid'),
        isNull(table.deletedAt),
        or(isNull(table.syncedAt), lt(table.syncedAt, readAt)),
        exists(longUnseen),
        companyId === undefined ? undefined : exists(lacking(companyId)),
      ),
    );
}
