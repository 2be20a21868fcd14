import { and, countDistinct, desc, gte, isNotNull, max, min, ne, sql } from 'drizzle-orm';
import { probeEventType } from '../../contract/event.ts';
import type { Silence } from '../../health/measured.ts';
import type { Executor } from '../connection/connect.ts';
import { journal, runs } from '../schema/metersync.ts';
import { mostCounted } from './counted.ts';
import { isRunRow } from './runs.ts';

/** Measures whether events arrive. Probes are not events of the service. */
export async function readSilence(db: Executor, most: number = mostCounted): Promise<Silence> {
  const quiet = await readQuiet(db);
  const missed = await readMissed(db, quiet?.last ?? null, most);
  return {
    lastEventAt: quiet?.last ?? null,
    quietSeconds: quiet?.seconds == null ? null : Math.max(0, quiet.seconds),
    missedRows: missed?.rows ?? 0,
    missedCompanies: missed?.companies ?? 0,
    missedAt: missed?.at ?? null,
  };
}

/**
 * Reads when the last event was received, and the seconds since then or since the first run began.
 */
async function readQuiet(db: Executor) {
  const last = db
    .select({ at: max(journal.receivedAt).as('last_at') })
    .from(journal)
    .where(ne(journal.type, probeEventType))
    .as('last');
  const first = db
    .select({ at: min(runs.startedAt) })
    .from(runs)
    .where(isRunRow);
  const [quiet] = await db
    .select({
      last: last.at,
      seconds: sql<
        number | null
      >`extract(epoch from clock_timestamp() - coalesce(${last.at}, ${first}))::float8`,
    })
    .from(last);
  return quiet;
}

/** Counts changes that runs found since the last event, and at least in the last day. */
async function readMissed(db: Executor, lastEventAt: string | null, most: number) {
  const { rowsMissed, companyId, finishedAt } = runs;
  const since = sql`least(now() - interval '1 day', ${lastEventAt ?? '-infinity'}::timestamptz)`;
  const missed = db
    .select({ rowsMissed, companyId, finishedAt })
    .from(runs)
    // Not a parameter, so that a partial index serves it.
    .where(and(isNotNull(companyId), sql`${rowsMissed} > 0`, gte(finishedAt, since)))
    .orderBy(desc(finishedAt))
    .limit(most)
    .as('missed');
  const [found] = await db
    .select({
      rows: sql<number>`coalesce(sum(${missed.rowsMissed}), 0)::int`,
      companies: countDistinct(missed.companyId),
      at: sql<string | null>`max(${missed.finishedAt})::text`,
    })
    .from(missed);
  return found;
}
