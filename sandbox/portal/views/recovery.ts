import { html, raw } from 'hono/html';
import { badge } from '../../../web/badge.ts';
import type { Markup } from '../../../web/markup.ts';
import type { Micros } from '../../timestamps.ts';
import { icons } from '../icons.ts';
import type { PortalEndpoint } from '../read/endpoints.ts';
import type { ReplayProgress } from '../read/replays.ts';
import { readableTime } from '../relative-time.ts';
import type { WindowChoice } from '../time-window.ts';
import { timeAgo } from './time.ts';
import { windowFields } from './window-fields.ts';

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
