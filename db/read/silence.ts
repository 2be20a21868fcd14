import { and, gte, isNotNull, sql } from 'drizzle-orm';
import { probeEventType } from '../../contract/event.ts';
import { shownTime } from '../../contract/times.ts';
import { counted } from '../../contract/words.ts';
import type { Executor } from '../connect.ts';
import { journal, runs } from '../schema/metersync.ts';

/** Measures of whether the service's events arrive. */
export interface Silence {
  /** When the last event of the service was received; null if none ever was. */
  readonly lastEventAt: string | null;
  /** Seconds since then or, without any event, since the first run began; null before that. */
  readonly quietSeconds: number | null;
  /**
   * Changes that runs found since the last event, or in the last day, though an event should have
   * reported them.
   */
  readonly missedRows: number;
  /** Companies with such changes, and when the last was found. */
  readonly missedCompanies: number;
  readonly missedAt: string | null;
  /** Sentences about what looks wrong; empty if nothing does. */
  readonly signs: readonly string[];
}

/**
 * Looks for signs of silence. `silenceHours` without any event are one; 0 turns that off. Probes
 * are not events of the service.
 */
export async function readSilence(db: Executor, silenceHours: number): Promise<Silence> {
  const quiet = await readQuiet(db);
  const missed = await readMissed(db, quiet?.last ?? null);
  const measured = {
    lastEventAt: quiet?.last ?? null,
    quietSeconds: quiet?.seconds == null ? null : Math.max(0, quiet.seconds),
    missedRows: missed?.rows ?? 0,
    missedCompanies: missed?.companies ?? 0,
    missedAt: missed?.at ?? null,
  };
  return { ...measured, signs: signsOf(measured, silenceHours) };
}

interface Quiet extends Record<string, unknown> {
  readonly last: string | null;
  readonly seconds: number | null;
}

/**
 * Reads when the last event was received, and the seconds since then or since the first run began.
 */
async function readQuiet(db: Executor): Promise<Quiet | undefined> {
  const result = await db.execute<Quiet>(sql`
    with last as (
      select max(${journal.receivedAt}) as at
      from ${journal}
      where ${journal.type} <> ${probeEventType}
    )
    select
      last.at::text as last,
      extract(
        epoch from clock_timestamp() - coalesce(
          last.at,
          (
            select min(${runs.startedAt})
            from ${runs}
          )
        )
      )::float8 as seconds
    from last`);
  return result.rows[0];
}

/** Counts changes that runs found since the last event, and at least in the last day. */
async function readMissed(
  db: Executor,
  lastEventAt: string | null,
): Promise<{ rows: number; companies: number; at: string | null } | undefined> {
  const { companyId, rowsMissed, finishedAt } = runs;
  const since = sql`least(
      clock_timestamp() - interval '1 day',
      ${lastEventAt ?? '-infinity'}::timestamptz
    )`;
  const [missed] = await db
    .select({
      rows: sql<number>`coalesce(sum(${rowsMissed}), 0)::int`,
      companies: sql<number>`count(distinct ${companyId})::int`,
      at: sql<string | null>`max(${finishedAt})::text`,
    })
    .from(runs)
    .where(and(isNotNull(companyId), sql`${rowsMissed} > 0`, gte(finishedAt, since)));
  return missed;
}

function signsOf(measured: Omit<Silence, 'signs'>, silenceHours: number): string[] {
  const { lastEventAt, quietSeconds, missedRows, missedCompanies, missedAt } = measured;
  const signs: string[] = [];
  if (missedRows > 0) {
    signs.push(
      `${counted(missedRows, 'change')} in ${counted(missedCompanies, 'company', 'companies')} ${missedRows === 1 ? 'was' : 'were'} found by backfills and told by no event,` +
        ` the last at ${shownTime(missedAt ?? '')}`,
    );
  }
  if (silenceHours > 0 && quietSeconds !== null && quietSeconds > silenceHours * 3600) {
    const hours = Math.floor(quietSeconds / 3600);
    signs.push(
      lastEventAt === null
        ? `no event ever came, ${counted(hours, 'hour')} after the first backfill`
        : `no event came for ${counted(hours, 'hour')} (SILENCE_HOURS is ${silenceHours})`,
    );
  }
  return signs;
}
