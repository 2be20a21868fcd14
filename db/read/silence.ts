import { and, countDistinct, desc, gte, isNotNull, max, min, ne, sql } from 'drizzle-orm';
import { probeEventType } from '../../contract/event.ts';
import { recordPolicy } from '../../contract/retry-policy.ts';
import type { Silence } from '../../health/measured.ts';
import { isWhole } from '../backfill/runs.ts';
import type { Executor } from '../connection/connect.ts';
import { journal, runs } from '../schema/metersync.ts';
import { mostCounted, secondsSince } from './counted.ts';

/** Measures whether events arrive. Probes are not events of the service. */
export async function readSilence(db: Executor, most: number = mostCounted): Promise<Silence> {
  const last = db
    .select({ at: max(journal.receivedAt).as('last_at') })
    .from(journal)
    .where(ne(journal.type, probeEventType))
    .as('last');
  const first = db
    .select({ at: min(runs.startedAt) })
    .from(runs)
    .where(isWhole(runs));
  const [quiet] = await db
    .select({
      at: last.at,
      seconds: sql<number | null>`${secondsSince(sql`coalesce(${last.at}, ${first})`)}`,
    })
    .from(last);
  const lastEventAt = quiet?.at ?? null;
  const seconds = quiet?.seconds ?? null;
  return {
    lastEventAt,
    quietSeconds: seconds === null ? null : Math.max(0, seconds),
    ...(await readMissed(db, lastEventAt, most)),
  };
}

/**
 * Counts changes that runs found since the last event, or in the last day if that is longer. A part
 * of a run at whose end an event waited that had been accepted a minute before the part began is
 * left out: the events of its changes may have waited, too.
 */
async function readMissed(db: Executor, lastEventAt: string | null, most: number) {
  const { rowsMissed, companyId, startedAt, finishedAt } = runs;
  const since = sql`least(now() - interval '1 day', ${lastEventAt ?? '-infinity'}::timestamptz)`;
  const lag = sql`make_interval(secs => ${recordPolicy.lagSeconds})`;
  const lastBefore = db
    .select({ recordedAt: journal.recordedAt })
    .from(journal)
    .where(sql`${journal.receivedAt} < ${startedAt} - ${lag}`)
    .orderBy(desc(journal.receivedAt))
    .limit(1);
  const missed = db
    .select({ rowsMissed, companyId, finishedAt })
    .from(runs)
    // The 0 is not a parameter, so that a partial index can be used.
    .where(
      and(
        isNotNull(companyId),
        sql`${rowsMissed} > 0`,
        gte(finishedAt, since),
        sql`${lastBefore} > ${finishedAt} is not true`,
      ),
    )
    .orderBy(desc(finishedAt))
    .limit(most)
    .as('missed');
  const [found] = await db
    .select({
      missedRows: sql<number>`coalesce(sum(${missed.rowsMissed}), 0)::int`,
      missedCompanies: countDistinct(missed.companyId),
      missedAt: max(missed.finishedAt),
    })
    .from(missed);
  return found ?? { missedRows: 0, missedCompanies: 0, missedAt: null };
}
