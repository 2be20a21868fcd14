import { html, raw } from 'hono/html';
import type { ClientBase, Pool } from 'pg';
import { badge, type Markup } from '../../web/parts.ts';
import { inTransaction } from '../database.ts';
import { Problem } from '../problem.ts';
import type { Micros } from '../time.ts';
import { type PortalEndpoint, sentAgainLater } from './endpoint.ts';
import { icons, readableTime, timeAgo, type WindowChoice, windowFields } from './parts.ts';

/** `message`: one, by hand. `failed`: those that never arrived. `missing`: those that were never tried. */
type ReplayKind = 'message' | 'failed' | 'missing';

interface ReplayAsked {
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

/** The values of the two forms, and which of them was refused. */
export interface RecoveryDraft {
  readonly kind?: 'failed' | 'missing';
  readonly choice: WindowChoice;
  readonly retrying: boolean;
  readonly wrong?: string;
}

const offered = ['1h', '24h', '7d', 'any', 'custom'] as const;

/** service.md 6.5: forms that replay failures of a time window or recover messages never tried. */
export function recovery(base: string, endpoint: PortalEndpoint, draft: RecoveryDraft): Markup {
  const action = `${base}/endpoints/${endpoint.id}/replays`;
  const shut = endpoint.state !== 'active';
  const wrongOf = (kind: 'failed' | 'missing') => (draft.kind === kind ? draft.wrong : undefined);
  const button = (words: string) =>
    html`<button class="outline" ${shut ? raw('disabled') : ''}>${icons.replay}${words}</button>`;
  return html`<section aria-labelledby="recovery"><h2 id="recovery">Send again</h2>
${shut && html`<p class="muted">Enable the endpoint to send messages to it again.</p>`}
<div class="pair">
<form method="post" action="${action}" class="card form" aria-labelledby="replay-failed" novalidate>
<input type="hidden" name="kind" value="failed"><h3 id="replay-failed">Replay failed messages</h3>
<p class="muted">All that failed on this endpoint and never arrived.</p>
${windowFields('failed', draft.choice, offered, wrongOf('failed'))}
<label class="option"><input type="checkbox" name="retrying" value="yes" ${draft.retrying ? raw('checked') : ''}>
<span>Also those that wait for a retry<small>They are sent now instead.</small></span></label>
${button('Replay failed messages')}</form>
<form method="post" action="${action}" class="card form" aria-labelledby="recover-missing" novalidate>
<input type="hidden" name="kind" value="missing"><h3 id="recover-missing">Recover missing messages</h3>
<p class="muted">All that were never tried here: written before the endpoint was added or while it was disabled.</p>
${windowFields('missing', draft.choice, offered, wrongOf('missing'))}
${button('Recover missing messages')}</form>
</div></section>`;
}

/** The progress of the newest replays. */
export function replayList(base: string, replays: readonly ReplayProgress[], now: Micros): Markup | '' {
  if (replays.length === 0) return '';
  return html`<section aria-labelledby="progress"><h2 id="progress">Progress</h2>
<ul class="cards">${replays.map((one) => replayCard(base, one, now))}</ul></section>`;
}

function replayCard(base: string, replay: ReplayProgress, now: Micros): Markup {
  const { id, kind, total, delivered, failed, superseded, retrying, pending, created } = replay;
  const ended = delivered + failed + superseded;
  const name = kind === 'missing' ? 'Recovery of missing messages' : 'Replay of failed messages';
  const state =
    ended < total
      ? badge(retrying > 0 ? 'uneasy' : 'busy', pending > 0 ? 'Under way' : 'Retrying')
      : badge(failed > 0 ? 'bad' : 'good', failed > 0 ? 'Ended with failures' : 'Done');
  return html`<li class="card" id="replay-${id}">
<div class="row"><strong>${name}</strong>${state}</div>
<p class="meta"><span>${span(base, replay)}</span><span>Begun ${timeAgo(created, now)}</span></p>
<progress max="${total}" value="${ended}" aria-label="${name}">${ended} of ${total}</progress>
<p class="meta"><span><b>${delivered}</b> of <b>${total}</b> delivered</span>
${failed > 0 && html`<span class="bad-text"><b>${failed}</b> failed</span>`}
${superseded > 0 && html`<span><b>${superseded}</b> sent again later</span>`}
${retrying > 0 && html`<span><b>${retrying}</b> waiting for a retry</span>`}
${pending > 0 && html`<span><b>${pending}</b> to be sent</span>`}</p></li>`;
}

function span(base: string, { from, until, sinceId }: ReplayProgress): Markup | string {
  if (sinceId !== null) return html`Since <a href="${base}/messages/${sinceId}"><code>${sinceId}</code></a>`;
  if (from === null && until === null) return 'Of any time';
  if (from === null) return `Until ${readableTime(until ?? '')}`;
  return until === null ? `Since ${readableTime(from)}` : `${readableTime(from)} to ${readableTime(until)}`;
}

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
