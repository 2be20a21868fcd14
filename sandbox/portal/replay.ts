import type { ClientBase, Pool } from 'pg';
import { inTransaction } from '../database/transaction.ts';
import { Problem } from '../problem.ts';

/** `message`: one, by hand. `failed`: those that never arrived. `missing`: those that were never tried. */
export type ReplayKind = 'message' | 'failed' | 'missing';

export interface ReplayAsked {
  readonly endpointId: string;
  /** Only messages that were written from this time on and before `until`. */
  readonly from: string | null;
  readonly until: string | null;
  /** Only messages from this one on. */
  readonly sinceSeq: string | null;
  /** The service's time, so that repeated messages are due at once. */
  readonly now: string;
}

/**
 * Sends one message to an endpoint again (service.md 6.5), with the same id and a new schedule of attempts. A
 * retry that still waits is cancelled, so that the message does not arrive twice.
 * @throws Problem 409 while the endpoint is disabled
 */
export function resendMessage(pool: Pool, seq: string, endpointId: string, now: string): Promise<void> {
  return inTransaction(pool, async (client) => {
    await lockActive(client, endpointId);
    const asked = { endpointId, from: null, until: null, sinceSeq: seq, now };
    await sendAgain(client, await writeReplay(client, 'message', asked), [seq], asked);
  });
}

/**
 * Sends again all messages that failed on an endpoint and never arrived, in a window or since a message
 * (service.md 6.5); with `retrying` also those that wait for a retry. Returns their number.
 * @throws Problem 409 while the endpoint is disabled.
 */
export const replayFailed = (pool: Pool, asked: ReplayAsked, retrying: boolean): Promise<number> =>
  replayMany(pool, 'failed', asked, async (client) => {
    const { rows } = await client.query<{ seq: string }>(
      `select e.seq::text as seq from sandbox.events e
        join sandbox.message_standings s on s.event_seq = e.seq and s.endpoint_id = $1
        where ($2::timestamp is null or e.created >= $2) and ($3::timestamp is null or e.created < $3)
          and ($4::bigint is null or e.seq >= $4)
          and (s.status = 'failed' or ($5 and s.status = 'retrying' and not s.in_flight))
        order by e.seq`,
      [asked.endpointId, asked.from, asked.until, asked.sinceSeq, retrying],
    );
    return rows.map(({ seq }) => seq);
  });

/**
 * Sends the messages of a window that were never sent to an endpoint, because they are older, or it was
 * disabled, or they were dropped on the way. Returns their number.
 * @throws Problem 409 while the endpoint is disabled.
 */
export const recoverMissing = (pool: Pool, asked: ReplayAsked): Promise<number> =>
  replayMany(pool, 'missing', asked, async (client) => {
    const { rows } = await client.query<{ seq: string }>(
      `select e.seq::text as seq from sandbox.events e
        join sandbox.endpoints p on p.id = $1 and p.organization_id = e.organization_id
          and (p.event_types = '{}' or e.type = any (p.event_types))
        where not e.example and ($2::timestamp is null or e.created >= $2)
          and ($3::timestamp is null or e.created < $3) and ($4::bigint is null or e.seq >= $4)
          and not exists (select from sandbox.message_standings s
            where s.event_seq = e.seq and s.endpoint_id = $1 and s.status <> 'missing')
        order by e.seq`,
      [asked.endpointId, asked.from, asked.until, asked.sinceSeq],
    );
    return rows.map(({ seq }) => seq);
  });

/** Locks the endpoint, so that a second click at the same time finds nothing left to send. */
function replayMany(
  pool: Pool,
  kind: ReplayKind,
  asked: ReplayAsked,
  choose: (client: ClientBase) => Promise<string[]>,
): Promise<number> {
  return inTransaction(pool, async (client) => {
    await lockActive(client, asked.endpointId);
    const chosen = await choose(client);
    if (chosen.length > 0) await sendAgain(client, await writeReplay(client, kind, asked), chosen, asked);
    return chosen.length;
  });
}

async function lockActive(client: ClientBase, endpointId: string): Promise<void> {
  const { rows } = await client.query<{ state: string }>(
    'select state from sandbox.endpoints where id = $1 for update',
    [endpointId],
  );
  if (rows[0]?.state !== 'active') {
    throw new Problem(409, 'This endpoint is disabled: enable it first, then send again.');
  }
}

async function writeReplay(client: ClientBase, kind: ReplayKind, asked: ReplayAsked): Promise<string> {
  const { endpointId, from, until, sinceSeq, now } = asked;
  const { rows } = await client.query<{ id: string }>(
    `insert into sandbox.replays (endpoint_id, kind, from_at, until_at, since_seq, created)
      values ($1, $2, $3, $4, $5, $6) returning id::text as id`,
    [endpointId, kind, from, until, sinceSeq, now],
  );
  return rows[0]?.id ?? '';
}

async function sendAgain(
  client: ClientBase,
  replayId: string,
  seqs: readonly string[],
  { endpointId, now }: ReplayAsked,
): Promise<void> {
  await client.query(
    `update sandbox.deliveries set state = 'cancelled'
      where event_seq = any ($1::bigint[]) and endpoint_id = $2 and state = 'waiting'`,
    [seqs, endpointId],
  );
  await client.query(
    `insert into sandbox.deliveries (event_seq, endpoint_id, due_at, replay_id)
      select seq, $2, $3, $4 from unnest($1::bigint[]) with ordinality s (seq, position) order by position`,
    [seqs, endpointId, now, replayId],
  );
  await client.query('update sandbox.replays set total = $2 where id = $1', [replayId, seqs.length]);
}
