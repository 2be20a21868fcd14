import type { FastifyInstance } from 'fastify';
import type { ById, PortalDependencies } from './dependencies.ts';
import { createInbox } from './inbox.ts';
import { noticeFor } from './notices.ts';
import { readEndpoint } from './read/endpoints.ts';
import { readInbox, readInboxRequests } from './read/inbox.ts';
import { show } from './session.ts';
import { inboxPage } from './views/inbox-page.ts';

/** Creates temporary inspection URLs and shows the requests that they receive (service.md 6.5). */
export function inboxPages(app: FastifyInstance, dependencies: PortalDependencies): void {
  const { pool, clock, dispatcher, address, newEndpointId, newSecret, newToken } = dependencies;

  app.post('/inboxes', async (request, reply) => {
    const { organizationId, frame } = request.portal;
    const made = { endpointId: newEndpointId(), secret: newSecret(), token: newToken() };
    await createInbox(pool, { organizationId, ...made, server: address(), now: clock.now() });
    await dispatcher.reload();
    return reply.redirect(`${frame.base}/endpoints/${made.endpointId}/inbox?done=inspecting`, 303);
  });

  app.get<ById>('/endpoints/:id/inbox', async (request, reply) => {
    const { organizationId, frame } = request.portal;
    const endpoint = await readEndpoint(pool, organizationId, request.params.id);
    const inbox = await readInbox(pool, endpoint.id);
    const requests = await readInboxRequests(pool, inbox.token);
    const body = inboxPage({ ...frame, endpoint, inbox, requests });
    return show(request, reply, { title: 'Inbox', section: 'Endpoints', notice: noticeFor(request), body });
  });
}
