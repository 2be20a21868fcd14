import { html } from 'hono/html';
import type { Markup } from '../../../web/markup.ts';
import type { Micros } from '../../timestamps.ts';
import { type Activity, activityDeliveries, type RecentMessage } from '../read/activity.ts';
import type { PortalEndpoint } from '../read/endpoints.ts';
import type { ReplayProgress } from '../read/replays.ts';
import { endpointHead } from './endpoint-head.ts';
import { messageRows, nothingHere } from './message-rows.ts';
import { type RecoveryDraft, recovery, replayList } from './recovery.ts';

export interface OverviewView {
  readonly base: string;
  readonly now: Micros;
  readonly endpoint: PortalEndpoint;
  readonly activity: Activity | undefined;
  readonly recent: readonly RecentMessage[];
  readonly replays: readonly ReplayProgress[];
  readonly draft: RecoveryDraft;
}

/** The endpoint's details page: results, the newest messages, and sending again (service.md 6.5). */
export function endpointOverview(view: OverviewView): Markup {
  const { base, now, endpoint, activity, recent, replays, draft } = view;
  const rows = recent.map((one) => ({ ...one, note: String(one.attempts) }));
  return html`${endpointHead(base, endpoint, 'overview', now)}
<div id="figures" data-live="2000">${figures(activity)}</div>
<div id="replays" data-live="1000">${replayList(base, replays, now)}</div>
<section aria-labelledby="recent"><div class="head"><h2 id="recent">Newest messages</h2>
<a href="${base}/messages?endpoint=${endpoint.id}">All messages</a></div>
<div id="recent-messages" data-live="2000">${
    rows.length > 0
      ? messageRows(base, rows, now, 'Newest messages of this endpoint', 'Attempts')
      : nothingHere(
          'Nothing was sent yet',
          html`It will appear here. To see one now, <a href="${base}/endpoints/${endpoint.id}/testing">send an example</a>.`,
        )
  }</div></section>
${recovery(base, endpoint, draft)}`;
}

function figures(activity: Activity | undefined): Markup {
  const { delivered = 0, failed = 0, open = 0 } = activity ?? {};
  const ended = delivered + failed;
  const share = ended === 0 ? '–' : `${((100 * delivered) / ended).toFixed(delivered === ended ? 0 : 1)} %`;
  const figure = (name: string, value: string | number, tone = '') =>
    html`<div class="${tone}"><dt>${name}</dt><dd>${value}</dd></div>`;
  return html`<dl class="figures">${figure('Delivered', delivered)}${figure('Failed', failed, failed > 0 ? 'bad-text' : '')}
${figure('On the way', open)}${figure('Success', share)}</dl>
<p class="muted small">Of the newest ${activityDeliveries} deliveries.</p>`;
}
