import { and, desc, eq, gt, inArray, isNotNull, isNull, or, type SQL, sql, sum } from 'drizzle-orm';
import { eventKinds } from '../../contract/event.ts';
import { type FailureCode, parkingCodes } from '../../contract/failures.ts';
import type { CatchUpKind } from '../../contract/names.ts';
import { recordPolicy } from '../../contract/retry-policy.ts';
import { array, isAmong, literal } from '../connection/arrays.ts';
import { type Database, type Executor, withTransaction } from '../connection/connect.ts';
import { journal, parked, runs, staleRecords } from '../schema/metersync.ts';
import { companies } from '../schema/utility.ts';
import { backOff } from './postpone.ts';
import { refreshEach } from './refresh-each.ts';
import { eventKind, keyOf, type StaleKind, type StaleRecord } from './stale.ts';

/** Whether the service is parked: it refused a request for a reason that holds for all requests. */
export const serviceParked: SQL = sql`exists (
      select
      from ${parked}
      where next_attempt_at > clock_timestamp()
    )`;

/** Parks all requests, for longer with each refusal. Refusals while parked count as one attempt. */
export async function parkService(db: Executor, code: FailureCode, message: string): Promise<void> {
  const until = (attempts: SQL): SQL =>
    sql`clock_timestamp() + ${backOff(attempts, recordPolicy.parkedSeconds)}`;
  await db
    .insert(parked)
    .values({ code, message, attempts: 1, nextAttemptAt: until(sql`0`) })
    .onConflictDoUpdate({
      target: parked.code,
      set: {
        message,
        attempts: sql`${parked.attempts} + 1`,
        nextAttemptAt: until(sql`${parked.attempts}`),
      },
      setWhere: sql`${parked.nextAttemptAt} <= clock_timestamp()`,
    });
}

/** Whether a noted failure still holds. An outage lapses: without requests nothing ends it. */
export const stillParked: SQL = sql`(
        ${parked.code} <> 'SERVICE_OUTAGE'
        or ${parked.nextAttemptAt} > clock_timestamp() - make_interval(secs => ${recordPolicy.outageSeconds})
      )`;

/** Notes that the service fails every request. Nothing is parked: failed work is tried again. */
export async function noteOutage(db: Executor, message: string): Promise<void> {
  const now = sql`clock_timestamp()`;
  await db
    .insert(parked)
    .values({ code: 'SERVICE_OUTAGE', message, attempts: 1, nextAttemptAt: now })
    .onConflictDoUpdate({
      target: parked.code,
      set: {
        message,
        since: sql`case when ${stillParked} then ${parked.since} else ${now} end`,
        attempts: sql`case when ${stillParked} then ${parked.attempts} + 1 else 1 end`,
        nextAttemptAt: now,
      },
    });
}

/** Reads the failures for which the service, or the work of one of these owners, is parked. */
export async function parkedCodes(
  db: Executor,
  kind: CatchUpKind,
  owners: readonly string[],
): Promise<{ service: FailureCode[]; owners: Map<string, FailureCode[]> }> {
  const service = await db.select({ code: parked.code }).from(parked);
  const asked = sql`unnest(${array(owners, 'text')}) as asked (owner)`;
  const latest = db
    .select({ code: staleRecords.errorCode })
    .from(staleRecords)
    .where(eq(staleRecords.queue, keyOf(eventKind[kind], sql`asked.owner`)))
    // Parked records are due last. Records that became stale since then are due now.
    .orderBy(desc(staleRecords.dueAt))
    .limit(20)
    .as('latest');
  const ofOwners = await db
    .select({
      owner: sql<string>`asked.owner`,
      codes: sql<FailureCode[]>`array_agg(distinct ${latest.code})`,
    })
    .from(asked)
    .crossJoinLateral(latest)
    .where(isAmong(latest.code, parkingCodes))
    .groupBy(sql`asked.owner`);
  return {
    service: service.map(({ code }) => code as FailureCode),
    owners: new Map(ofOwners.map(({ owner, codes }) => [owner, codes])),
  };
}

/** How many events were revived, and the catch-ups to wake for them. */
export interface Revived {
  readonly events: number;
  readonly kinds: readonly CatchUpKind[];
}

/**
 * Makes work due at once that waits because of these failures. With `over`, the cause is gone and
 * the service is unparked. Otherwise it is only tried again, and the next pause is short again.
 */
export async function reviveParked(
  db: Database,
  codes: readonly FailureCode[],
  how: { over: boolean },
): Promise<Revived> {
  // In one transaction: a pending event without a stale record would stay pending forever.
  return await withTransaction(db, (tx) => reviveTogether(tx, codes, how));
}

async function reviveTogether(
  db: Executor,
  codes: readonly FailureCode[],
  { over }: { over: boolean },
): Promise<Revived> {
  const isChosen = isAmong(parked.code, codes);
  if (over) await db.delete(parked).where(isChosen);
  else {
    const anew = { attempts: 0, nextAttemptAt: sql`clock_timestamp()` };
    await db.update(parked).set(anew).where(isChosen);
  }
  // Missing events are tried again only when the cause is known to be gone.
  const found = over ? [] : await reopenMissing(db, codes);
  await refreshEach(db, found);
  const { key, kind, dueAt, errorCode, events } = staleRecords;
  const ofCode = db
    .select({ key, dueAt })
    .from(staleRecords)
    .where(eq(errorCode, sql`asked.code`))
    .offset(literal(0))
    .for('update', { skipLocked: true })
    .as('of_code');
  const waiting = db
    .select({ key: ofCode.key })
    .from(sql`unnest(${array(codes, 'text')}) as asked (code)`)
    .crossJoinLateral(ofCode)
    .where(gt(ofCode.dueAt, sql`clock_timestamp()`));
  const revived = db
    .$with('revived')
    .as(
      db
        .update(staleRecords)
        .set({ dueAt: sql`clock_timestamp()`, attempts: 0, triedSince: null })
        .where(sql`${key} = any(array${waiting})`)
        .returning({ kind, events }),
    );
  const counted = await db
    .with(revived)
    .select({ kind: revived.kind, events: sum(revived.events).mapWith(Number) })
    .from(revived)
    .groupBy(revived.kind);
  const revivedEvents = new Map(counted.map((row) => [row.kind as StaleKind, row.events]));
  for (const one of found) revivedEvents.set(one.kind, (revivedEvents.get(one.kind) ?? 0) + 1);
  return {
    events: [...revivedEvents.values()].reduce((all, count) => all + count, 0),
    kinds: [...revivedEvents.keys()].map((one) => eventKinds[one].plural),
  };
}

/** Makes events pending that are missing because of these failures; returns their records. */
async function reopenMissing(db: Executor, codes: readonly FailureCode[]): Promise<StaleRecord[]> {
  const missing = db
    .select({ id: journal.id })
    .from(journal)
    .where(and(sql`${journal.aside} = 'missing'`, isAmong(journal.errorCode, codes)))
    .orderBy(journal.asideAt)
    .for('no key update', { skipLocked: true });
  return await db
    .update(journal)
    .set({ outcome: 'pending', settledAt: null, error: null, errorCode: null, attempts: 0 })
    .where(sql`${journal.id} = any(array${missing})`)
    .returning({
      kind: sql<StaleKind>`${journal.kind}`,
      record_id: sql<string>`case ${journal.kind}
        when 'interval' then ${journal.id}
        else ${journal.recordId}
      end`,
    });
}

/** Whether a company has a live row. Failures of a company that is gone need no retry. */
export const livesCompany = (companyId: SQL): SQL => sql`exists (
        select
        from ${companies} c
        where c.id = ${companyId}
          and c.deleted_at is null
        offset 0
      )`;

/**
 * Reads live companies whose last read failed for one of these reasons. `everything` is true when
 * the list of companies itself could not be read.
 */
export async function failedParts(
  db: Executor,
  codes: readonly FailureCode[],
): Promise<{ companies: string[]; everything: boolean }> {
  const { companyId, resource, state, errorCode, startedAt } = runs;
  const last = db
    .selectDistinctOn([companyId, resource], { companyId, state, errorCode })
    .from(runs)
    .where(isNotNull(resource))
    .orderBy(companyId, resource, desc(startedAt))
    .as('last');
  const failed = await db
    .selectDistinct({ companyId: last.companyId })
    .from(last)
    .where(
      and(
        inArray(last.state, ['failed', 'partial']),
        isAmong(last.errorCode, codes),
        or(isNull(last.companyId), livesCompany(sql`${last.companyId}`)),
      ),
    )
    .orderBy(last.companyId);
  const companies = failed.flatMap((row) => row.companyId ?? []);
  return { companies, everything: companies.length < failed.length };
}
