import type { FastifyInstance } from 'fastify';
import { field, formOf } from '../../web/form.ts';
import { badRequest } from '../problem.ts';
import { toText } from '../timestamps.ts';
import type { ById, PortalDependencies } from './dependencies.ts';
import { showOverview } from './overview-page.ts';
import { readEndpoint } from './read/endpoints.ts';
import { recoverMissing, replayFailed } from './replay.ts';
import { readWindow, windowOf } from './time-window.ts';

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
