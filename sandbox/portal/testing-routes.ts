import type { FastifyInstance } from 'fastify';
import { field, formOf, queryOf } from '../../web/form.ts';
import { badRequest } from '../problem.ts';
import { toText } from '../timestamps.ts';
import { isEventType } from './chosen-types.ts';
import type { ById, PortalDependencies } from './dependencies.ts';
import { examplePayload } from './examples.ts';
import { noticeFor } from './notices.ts';
import { readRecentExamples } from './read/activity.ts';
import { readEndpoint } from './read/endpoints.ts';
import { sendExample } from './send-example.ts';
import { show } from './session.ts';
import { endpointTesting } from './views/endpoint-testing.ts';

const examplesShown = 10;

/** The testing tab (service.md 6.5). */
export function testingRoutes(app: FastifyInstance, dependencies: PortalDependencies): void {
  const { pool, clock, dispatcher, newMessageId } = dependencies;

  app.get<ById>('/endpoints/:id/testing', async (request, reply) => {
    const { organizationId, frame } = request.portal;
    const endpoint = await readEndpoint(pool, organizationId, request.params.id);
    const asked = field(queryOf(request), 'type');
    const type = isEventType(asked) ? asked : 'connection.created.v2';
    const example = JSON.stringify(examplePayload(type, toText(frame.now)));
    const sent = await readRecentExamples(pool, endpoint.id, examplesShown);
    const body = endpointTesting({ ...frame, endpoint, type, example, sent });
    return show(request, reply, { title: 'Testing', section: 'Endpoints', notice: noticeFor(request), body });
  });

  app.post<ById>('/endpoints/:id/testing', async (request, reply) => {
    const { organizationId, frame } = request.portal;
    const endpoint = await readEndpoint(pool, organizationId, request.params.id);
    const type = field(formOf(request), 'type');
    if (!isEventType(type)) throw badRequest('There is no such event type.');
    await sendExample(pool, endpoint.id, type, { messageId: newMessageId(), now: toText(clock.now()) });
    dispatcher.wake();
    return reply.redirect(`${frame.base}/endpoints/${endpoint.id}/testing?type=${type}&done=example`, 303);
  });
}
