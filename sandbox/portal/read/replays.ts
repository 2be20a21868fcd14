import type { Pool } from 'pg';
import type { ReplayKind } from '../replay.ts';
import { sentAgainLater } from './activity.ts';

/** How far a replay has come. */
export interface ReplayProgress {
  readonly id: string;
  readonly kind: ReplayKind;
  readonly created: string;
  readonly from: string | null;
  readonly until: string | null;
  /** The message from which on failures are sent again. */
  readonly sinceId: string | null;
  readonly total: number;
  readonly delivered: number;
  readonly failed: number;
  /** Given up because the same message was sent again later. */
  readonly superseded: number;
  /** Failed at least once and waiting for a retry. */
  readonly retrying: number;
  /** Not tried yet. */
  readonly pending: number;
}

/** Reads an endpoint's newest replays of several messages. */
export async function readReplays(pool: Pool, endpointId: string, limit: number): Promise<ReplayProgress[]> {
  const { rows } = await pool.query<ReplayProgress>(
    `select r.id::text as id, r.kind, r.total, e.id as "sinceId",
        to_char(r.created, 'YYYY-MM-DD"T"HH24:MI:SS.US') as created,
        to_char(r.from_at, 'YYYY-MM-DD"T"HH24:MI:SS.US') as from,
        to_char(r.until_at, 'YYYY-MM-DD"T"HH24:MI:SS.US') as until, c.*
      from (select * from sandbox.replays where endpoint_id = $1 and kind <> 'message'
        order by id desc limit $2) r
      left join sandbox.events e on e.seq = r.since_seq,
      lateral (select count(*) filter (where state = 'delivered')::integer as delivered,
          count(*) filter (where state in ('failed', 'cancelled', 'dropped') and not superseded)::integer as failed,
          count(*) filter (where superseded)::integer as superseded,
          count(*) filter (where state in ('waiting', 'in_flight') and attempts > 0)::integer as retrying,
          count(*) filter (where state in ('waiting', 'in_flight') and attempts = 0)::integer as pending
        from (select state, attempts, state = 'cancelled' and ${sentAgainLater} as superseded
            from sandbox.deliveries d where replay_id = r.id) d) c
      order by r.id desc`,
    [endpointId, limit],
  );
  return rows;
}
