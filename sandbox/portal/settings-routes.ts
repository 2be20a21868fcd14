import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { field, formOf, queryOf } from '../../web/form.ts';
import { inTransaction } from '../database/transaction.ts';
import { wrongWithAddress } from '../delivery/endpoint-address.ts';
import { rotateSecret, rotationHours, setEndpointState, updateEndpoint } from '../delivery/endpoints.ts';
import { badRequest } from '../problem.ts';
import { secondsToMicros, toText } from '../timestamps.ts';
import { chosenTypes } from './chosen-types.ts';
import type { ById, PortalDependencies } from './dependencies.ts';
import { noticeFor } from './notices.ts';
import { readEndpoint } from './read/endpoints.ts';
import { show } from './session.ts';
import type { EndpointDraft } from './views/endpoint-form.ts';
import { endpointSettings } from './views/endpoint-settings.ts';

/** Changes an endpoint's address, types and secret; disables, enables or removes it (service.md 3.2). */
export function settingsRoutes(app: FastifyInstance, dependencies: PortalDependencies): void {
  const { pool, clock, dispatcher, newSecret } = dependencies;

  app.get<ById>('/endpoints/:id/settings', (request, reply) => showSettings(request, reply, dependencies));

  app.post<ById>('/endpoints/:id', async (request, reply) => {
    const { base, endpoint } = await mine(request, dependencies);
    const form = formOf(request);
    const draft = { url: field(form, 'url'), eventTypes: chosenTypes(form) };
    // The address of an inspection URL cannot be changed, only its event types.
    const url = endpoint.inboxToken === null ? draft.url : endpoint.url;
    const wrong = wrongWithAddress(url);
    if (wrong !== undefined) return showSettings(request, reply, dependencies, { ...draft, wrong });
    await updateEndpoint(pool, endpoint.id, { ...draft, url });
    await dispatcher.reload();
    return reply.redirect(`${base}/settings?done=saved`, 303);
  });

  app.post<ById>('/endpoints/:id/secret', async (request, reply) => {
    const { base, endpoint } = await mine(request, dependencies);
    const until = toText(clock.now() + secondsToMicros(rotationHours * 3600));
    await rotateSecret(pool, endpoint.id, newSecret(), until);
    await dispatcher.reload();
    return reply.redirect(`${base}/settings?done=rotated#signing`, 303);
  });

  app.post<ById>('/endpoints/:id/state', async (request, reply) => {
    const { base, endpoint } = await mine(request, dependencies);
    const state = field(formOf(request), 'state');
    if (state !== 'active' && state !== 'disabled') throw badRequest('An endpoint is active or disabled.');
    // Enabling an active endpoint would forget since when it has been failing.
    if (state !== endpoint.state) {
      await inTransaction(pool, (client) => setEndpointState(client, endpoint.id, state));
      await dispatcher.reload();
    }
    return reply.redirect(`${base}?done=${state === 'active' ? 'enabled' : 'disabled'}`, 303);
  });

  app.post<ById>('/endpoints/:id/remove', async (request, reply) => {
    const { endpoint } = await mine(request, dependencies);
    await inTransaction(pool, (client) => setEndpointState(client, endpoint.id, 'removed'));
    await dispatcher.reload();
    return reply.redirect(`${request.portal.frame.base}/endpoints?done=removed`, 303);
  });
}

async function mine(request: FastifyRequest<ById>, { pool }: PortalDependencies) {
  const { organizationId, frame } = request.portal;
  const endpoint = await readEndpoint(pool, organizationId, request.params.id);
  return { endpoint, base: `${frame.base}/endpoints/${endpoint.id}` };
}

async function showSettings(
  request: FastifyRequest<ById>,
  reply: FastifyReply,
  dependencies: PortalDependencies,
  draft?: EndpointDraft,
): Promise<FastifyReply> {
  const { endpoint } = await mine(request, dependencies);
  const query = queryOf(request);
  const body = endpointSettings({
    ...request.portal.frame,
    endpoint,
    draft: draft ?? endpoint,
    secretShown: field(query, 'secret') === 'shown',
    asked: field(query, 'ask'),
  });
  const title = draft === undefined ? 'Endpoint settings' : 'Endpoint settings: not saved';
  return show(
    request,
    reply,
    { title, section: 'Endpoints', notice: noticeFor(request), body },
    draft === undefined ? 200 : 400,
  );
}
