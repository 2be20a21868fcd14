import { sql } from 'drizzle-orm';
import { probeEventType } from '../../contract/event.ts';
import type { Executor } from '../connect.ts';

/** What tells that the service's events may not arrive. */
export interface Silence {
  /** When the last event of the service was received; null when none ever was. */
  readonly lastEventAt: string | null;
  /**
   * Seconds since then or, when no event ever came, since the first run began; null before that.
   */
  readonly quietSeconds: number | null;
  /**
   * Changes that runs found since the last event, or in the last day, though an event should have
   * told of them.
   */
  readonly missedRows: number;
  /** Companies that had such changes, and when the last of them was found. */
  readonly missedCompanies: number;
  readonly missedAt: string | null;
  /** What of this is worth a look, in words; none when nothing is. */
  readonly signs: readonly string[];
}

/**
 * Looks for signs of silence; `silenceHours` without any event are one, never when 0. Probes are no
 * events of the service.
 */
export async function readSilence(db: Executor, silenceHours: number): Promise<Silence> {
  const [quiet] = (
    await db.execute<{ last: string | null; seconds: number | null }>(sql`
      with last as (
        select max(received_at) as at from metersync.journal where type <> ${probeEventType}
      )
      select at::text as last, extract(epoch from clock_timestamp()
        - coalesce(at, (select min(started_at) from metersync.runs)))::float8 as seconds from last`)
  ).rows;
  const [missed] = (
    await db.execute<{ rows: number; companies: number; at: string | null }>(sql`
      select coalesce(sum(rows_missed), 0)::int as rows, count(distinct company_id)::int as companies,
        max(finished_at)::text as at
      from metersync.runs where company_id is not null and rows_missed > 0
        and finished_at >= least(clock_timestamp() - interval '1 day', ${quiet?.last ?? '-infinity'}::timestamptz)`)
  ).rows;
  const told = {
    lastEventAt: quiet?.last ?? null,
    quietSeconds: quiet?.seconds == null ? null : Math.max(0, quiet.seconds),
    missedRows: missed?.rows ?? 0,
    missedCompanies: missed?.companies ?? 0,
    missedAt: missed?.at ?? null,
  };
  return { ...told, signs: signsOf(told, silenceHours) };
}

function signsOf(told: Omit<Silence, 'signs'>, silenceHours: number): string[] {
  const { lastEventAt, quietSeconds, missedRows, missedCompanies, missedAt } = told;
  const signs: string[] = [];
  if (missedRows > 0) {
    const companies = missedCompanies === 1 ? '1 company' : `${missedCompanies} companies`;
    signs.push(
      `${missedRows} changes in ${companies} were found by backfills and told by no event, the last at ${missedAt}`,
    );
  }
  if (silenceHours > 0 && quietSeconds !== null && quietSeconds > silenceHours * 3600) {
    const hours = Math.floor(quietSeconds / 3600);
    signs.push(
      lastEventAt === null
        ? `no event ever came, ${hours} hours after the first backfill`
        : `no event came for ${hours} hours (SILENCE_HOURS is ${silenceHours})`,
    );
  }
  return signs;
}
