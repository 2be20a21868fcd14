import { and, desc, eq, gt, inArray, isNotNull, isNull, or, type SQL, sql } from 'drizzle-orm';
import { type FailureCode, parkingCodes } from '../../contract/failures.ts';
import type { CatchUpKind } from '../../contract/names.ts';
import { recordPolicy } from '../../contract/retry-policy.ts';
import { array, isAmong, literal } from '../connection/arrays.ts';
import { type Database, type Executor, withTransaction } from '../connection/connect.ts';
import { eventKind, isPending, queueOf } from '../events/queue.ts';
import { backOff, waitingAgain } from '../events/settling.ts';
import { journal, parked, runs } from '../schema/metersync.ts';
import { companies } from '../schema/utility.ts';

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
    .select({ code: journal.errorCode })
    .from(journal)
    .where(eq(journal.queue, queueOf(eventKind[kind], sql`asked.owner`)))
    // Parked events are due last. Events that came since then are due now.
    .orderBy(desc(journal.dueAt))
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

/**
 * Makes work due at once that waits because of these failures. With `over`, the cause is gone and
 * the service is unparked. Otherwise it is only tried again, and the next pause is short again. Returns
 * the number of events.
 */
export async function reviveParked(
  db: Database,
  codes: readonly FailureCode[],
  how: { over: boolean },
): Promise<number> {
  return await withTransaction(db, (tx) => reviveTogether(tx, codes, how));
}

async function reviveTogether(
  db: Executor,
  codes: readonly FailureCode[],
  { over }: { over: boolean },
): Promise<number> {
  const isChosen = isAmong(parked.code, codes);
  if (over) await db.delete(parked).where(isChosen);
  else {
    const anew = { attempts: 0, nextAttemptAt: sql`clock_timestamp()` };
    await db.update(parked).set(anew).where(isChosen);
  }
  // Whoever resumes knows of a cause that is gone, so missing events are tried again, too.
  const found = over ? 0 : await reopenMissing(db, codes);
  const failed = db
    .select({ id: journal.id, dueAt: journal.dueAt })
    .from(journal)
    .where(and(eq(journal.errorCode, sql`asked.code`), isPending))
    .orderBy(journal.errorCode, journal.dueAt)
    .offset(literal(0))
    .for('no key update', { skipLocked: true })
    .as('failed');
  const waiting = db
    .select({ id: failed.id })
    .from(sql`unnest(${array(codes, 'text')}) as asked (code)`)
    .crossJoinLateral(failed)
    .where(gt(failed.dueAt, sql`clock_timestamp()`));
  const revived = await db
    .update(journal)
    .set({ dueAt: sql`clock_timestamp()`, attempts: 0 })
    .where(sql`${journal.id} = any(array${waiting})`);
  return found + (revived.rowCount ?? 0);
}

/** Makes events pending that are missing because of these failures; returns their number. */
async function reopenMissing(db: Executor, codes: readonly FailureCode[]): Promise<number> {
  const missing = db
    .select({ id: journal.id })
    .from(journal)
    .where(and(sql`${journal.aside} = 'missing'`, isAmong(journal.errorCode, codes)))
    .orderBy(journal.asideAt)
    .for('no key update', { skipLocked: true });
  const { rowCount } = await db.execute(sql`
    update ${journal} set
      ${waitingAgain}
    where id = any(array${missing})`);
  return rowCount ?? 0;
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
