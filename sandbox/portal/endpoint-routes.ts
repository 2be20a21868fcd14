import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { addEndpoint } from '../delivery/endpoints.ts';
import { type EventType, eventTypes } from '../events/payloads.ts';
import { badRequest } from '../problem.ts';
import { toText } from '../timestamps.ts';
import { wrongWithAddress } from './endpoint-address.ts';
import { field, formOf, queryOf } from './form.ts';
import { noticeOf } from './notices.ts';
import { readActivity, readRecentMessages } from './read/activity.ts';
import { readEndpoint, readEndpoints } from './read/endpoints.ts';
import { readReplays } from './read/replays.ts';
import type { PortalDependencies } from './routes.ts';
import { show } from './session.ts';
import { newEndpoint } from './views/endpoint-form.ts';
import { endpointList } from './views/endpoint-list.ts';
import { endpointOverview } from './views/endpoint-overview.ts';
import type { RecoveryDraft } from './views/recovery.ts';

export interface ById {
  Params: { id: string };
}

const recentMessages = 10;
const replaysShown = 5;

/** The list of endpoints, adding one, and the details page of each. */
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
    return show(request, reply, { ...titled('Endpoints', request), body });
  });

  app.get('/endpoints/new', (request, reply) =>
    show(request, reply, {
      ...titled('Add endpoint', request),
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

/** The endpoint's details page, with what its two forms hold. */
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
    readRecentMessages(pool, endpoint.id, recentMessages, null),
    readReplays(pool, endpoint.id, replaysShown),
  ]);
  const body = endpointOverview({ ...frame, endpoint, activity, recent, replays, draft });
  return show(
    request,
    reply,
    { ...titled('Endpoint', request), body },
    draft.wrong === undefined ? 200 : 400,
  );
}

export const titled = (title: string, request: FastifyRequest) =>
  ({ title, section: 'Endpoints', notice: noticeOf(queryOf(request)) }) as const;

/** The event types that a form has ticked. @throws Problem 400 for one that is none. */
export function chosenTypes(form: URLSearchParams): EventType[] {
  const chosen = form.getAll('type');
  for (const type of chosen) if (!isEventType(type)) throw badRequest('There is no such event type.');
  return eventTypes.filter((type) => chosen.includes(type));
}

export const isEventType = (text: string): text is EventType =>
  (eventTypes as readonly string[]).includes(text);
