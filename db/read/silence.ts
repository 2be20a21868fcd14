import { sql } from 'drizzle-orm';
import { probeEventType } from '../../contract/event.ts';
import type { Silence } from '../../health/measured.ts';
import type { Executor } from '../connection/connect.ts';
import { journal, runs } from '../schema/metersync.ts';
import { type Most, mostCounted } from './counted.ts';

/** Measures whether events arrive. Probes are not events of the service. */
export async function readSilence(db: Executor, most: Most = mostCounted): Promise<Silence> {
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
            where ${runs.companyId} is null
              and ${runs.resource} is null
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
  most: Most,
): Promise<{ rows: number; companies: number; at: string | null } | undefined> {
  const result = await db.execute<{ rows: number; companies: number; at: string | null }>(sql`
    select
      coalesce(sum(rows_missed), 0)::int as rows,
      count(distinct company_id)::int as companies,
      max(finished_at)::text as at
    from (
      select
        ${runs.rowsMissed},
        ${runs.companyId},
        ${runs.finishedAt}
      from ${runs}
      where ${runs.companyId} is not null
        and ${runs.rowsMissed} > 0
        and ${runs.finishedAt} >= least(
          now() - interval '1 day',
          ${lastEventAt ?? '-infinity'}::timestamptz
        )
      order by ${runs.finishedAt} desc
      limit ${most}
    ) missed`);
  return result.rows[0];
}
