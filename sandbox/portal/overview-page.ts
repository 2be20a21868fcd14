import type { FastifyReply, FastifyRequest } from 'fastify';
import type { ById, PortalDependencies } from './dependencies.ts';
import { noticeFor } from './notices.ts';
import { readActivity, readRecentMessages } from './read/activity.ts';
import { readEndpoint } from './read/endpoints.ts';
import { readReplays } from './read/replays.ts';
import { show } from './session.ts';
import { endpointOverview } from './views/endpoint-overview.ts';
import type { RecoveryDraft } from './views/recovery.ts';

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
