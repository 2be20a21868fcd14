import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { html } from 'hono/html';
import type { Pool } from 'pg';
import { field, formOf } from '../../web/form.ts';
import type { Markup } from '../../web/parts.ts';
import { badRequest } from '../problem.ts';
import { type Micros, toText } from '../time.ts';
import {
  type Activity,
  activityDeliveries,
  endpointHead,
  messageColumns,
  type PortalEndpoint,
  type RecentMessage,
  readActivity,
  readEndpoint,
  standing,
} from './endpoint.ts';
import { messageRows, nothingHere, readWindow, windowOf } from './parts.ts';
import {
  type RecoveryDraft,
  type ReplayProgress,
  readReplays,
  recoverMissing,
  recovery,
  replayFailed,
  replayList,
} from './replays.ts';
import { type ById, noticeFor, type PortalDependencies, show } from './session.ts';

const recentMessages = 10;

const replaysShown = 5;

/** Shows the endpoint's details page. `draft` has the defaults or the refused values of its forms. */
export async function showOverview(
  request: FastifyRequest<ById>,
  reply: FastifyReply,
  { pool }: PortalDependencies,
  draft: RecoveryDraft,
): Promise<FastifyReply> {
  const { organizationId, frame } = request.portal;
  const endpoint = await readEndpoint(pool, organizationId, request.params.id);
  const [[activity], recent, replays] = await Promise.all([
    readActivity(pool, [endpoint.id]),
    readRecentMessages(pool, endpoint.id, recentMessages),
    readReplays(pool, endpoint.id, replaysShown),
  ]);
  const body = endpointOverview({ ...frame, endpoint, activity, recent, replays, draft });
  const page = { title: 'Endpoint', section: 'Endpoints', notice: noticeFor(request), body } as const;
  return show(request, reply, page, draft.wrong === undefined ? 200 : 400);
}

/** Bulk replay of failures and recovery of missing messages, from the endpoint's details page (service.md 6.5). */
export function replayRoutes(app: FastifyInstance, dependencies: PortalDependencies): void {
  const { pool, clock, dispatcher } = dependencies;

  app.post<ById>('/endpoints/:id/replays', async (request, reply) => {
    const { organizationId, frame } = request.portal;
    const endpoint = await readEndpoint(pool, organizationId, request.params.id);
    const form = formOf(request);
    const kind = field(form, 'kind');
    if (kind !== 'failed' && kind !== 'missing') throw badRequest('Choose what to send again.');
    const choice = readWindow(form, '24h');
    const retrying = field(form, 'retrying') === 'yes';
    const now = clock.now();
    const window = windowOf(choice, now);
    if ('wrong' in window) {
      return showOverview(request, reply, dependencies, { kind, choice, retrying, wrong: window.wrong });
    }
    const asked = { endpointId: endpoint.id, ...window, sinceSeq: null, now: toText(now) };
    const count =
      kind === 'failed' ? await replayFailed(pool, asked, retrying) : await recoverMissing(pool, asked);
    dispatcher.wake();
    const done = count > 0 ? 'replaying' : 'nothing';
    return reply.redirect(`${frame.base}/endpoints/${endpoint.id}?done=${done}`, 303);
  });
}

interface OverviewView {
  readonly base: string;
  readonly now: Micros;
  readonly endpoint: PortalEndpoint;
  readonly activity: Activity | undefined;
  readonly recent: readonly RecentMessage[];
  readonly replays: readonly ReplayProgress[];
  readonly draft: RecoveryDraft;
}

/** The endpoint's details page: results, the newest messages, and sending again (service.md 6.5). */
function endpointOverview(view: OverviewView): Markup {
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

export function figures(activity: Activity | undefined): Markup {
  const { delivered = 0, failed = 0, open = 0 } = activity ?? {};
  const ended = delivered + failed;
  const share = ended === 0 ? '–' : `${((100 * delivered) / ended).toFixed(delivered === ended ? 0 : 1)} %`;
  const figure = (name: string, value: string | number, tone = '') =>
    html`<div class="${tone}"><dt>${name}</dt><dd>${value}</dd></div>`;
  return html`<dl class="figures">${figure('Delivered', delivered)}${figure('Failed', failed, failed > 0 ? 'bad-text' : '')}
${figure('On the way', open)}${figure('Success', share)}</dl>
<p class="muted small">Of the newest ${activityDeliveries} deliveries.</p>`;
}

/** The messages of an endpoint's newest deliveries, each once. */
async function readRecentMessages(pool: Pool, endpointId: string, limit: number): Promise<RecentMessage[]> {
  const { rows } = await pool.query<RecentMessage>({
    name: 'portal recent messages',
    text: `select ${messageColumns} from (select event_seq, max(id) as newest from (
          select event_seq, id from sandbox.deliveries where endpoint_id = $1
            and id > (select deliveries_after from sandbox.endpoints where id = $1) order by id desc limit $2) l
        group by event_seq) r
      join sandbox.events e on e.seq = r.event_seq, ${standing}
      order by r.newest desc`,
    values: [endpointId, limit],
  });
  return rows;
}
