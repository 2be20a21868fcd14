import type { FastifyInstance } from 'fastify';
import { field, formOf } from '../../web/form.ts';
import { wrongWithAddress } from '../delivery/endpoint-address.ts';
import { addEndpoint } from '../delivery/endpoints.ts';
import { toText } from '../timestamps.ts';
import { chosenTypes } from './chosen-types.ts';
import type { ById, PortalDependencies } from './dependencies.ts';
import { noticeFor } from './notices.ts';
import { showOverview } from './overview-page.ts';
import { readActivity } from './read/activity.ts';
import { readEndpoints } from './read/endpoints.ts';
import { show } from './session.ts';
import { newEndpoint } from './views/endpoint-form.ts';
import { endpointList } from './views/endpoint-list.ts';

/** The list of endpoints, the form that adds an endpoint, and the details page of each. */
export function endpointRoutes(app: FastifyInstance, dependencies: PortalDependencies): void {
  const { pool, clock, dispatcher, newEndpointId, newSecret } = dependencies;

  app.get('/endpoints', async (request, reply) => {
    const { organizationId, frame } = request.portal;
    const endpoints = await readEndpoints(pool, organizationId);
    const found = await readActivity(
      pool,
      endpoints.map(({ id }) => id),
    );
    const activity = new Map(found.map((one) => [one.endpointId, one]));
    const body = endpointList({ ...frame, endpoints, activity });
    return show(request, reply, {
      title: 'Endpoints',
      section: 'Endpoints',
      notice: noticeFor(request),
      body,
    });
  });

  app.get('/endpoints/new', (request, reply) =>
    show(request, reply, {
      title: 'Add endpoint',
      section: 'Endpoints',
      body: newEndpoint(request.portal.frame.base, { url: '', eventTypes: [] }),
    }),
  );

  app.post('/endpoints', async (request, reply) => {
    const { organizationId, frame } = request.portal;
    const form = formOf(request);
    const draft = { url: field(form, 'url'), eventTypes: chosenTypes(form) };
    const wrong = wrongWithAddress(draft.url);
    if (wrong !== undefined) {
      const body = newEndpoint(frame.base, { ...draft, wrong });
      return show(request, reply, { title: 'Add endpoint: not added', section: 'Endpoints', body }, 400);
    }
    const made = { id: newEndpointId(), secret: newSecret(), now: toText(clock.now()) };
    await addEndpoint(pool, { ...draft, organizationId }, made);
    await dispatcher.reload();
    return reply.redirect(`${frame.base}/endpoints/${made.id}?done=added`, 303);
  });

  app.get<ById>('/endpoints/:id', (request, reply) =>
    showOverview(request, reply, dependencies, {
      choice: { choice: '24h', from: '', until: '' },
      retrying: true,
    }),
  );
}
