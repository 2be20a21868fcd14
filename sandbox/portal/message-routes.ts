import type { FastifyInstance, FastifyRequest } from 'fastify';
import { field, formOf, queryOf } from '../../web/form.ts';
import { pageHeaders } from '../../web/page-headers.ts';
import { toText } from '../timestamps.ts';
import { isEventType } from './chosen-types.ts';
import type { ById, PortalDependencies } from './dependencies.ts';
import { noticeFor } from './notices.ts';
import { readEndpoint, readEndpoints } from './read/endpoints.ts';
import { readMessage, readMessageAttempts, readStandings } from './read/message.ts';
import { type MessagePage, readMessages } from './read/messages.ts';
import { replayFailed, resendMessage } from './replay.ts';
import { show } from './session.ts';
import { readWindow, windowOf } from './time-window.ts';
import { messageList } from './views/message-list.ts';
import { messagePage } from './views/message-page.ts';
import { type MessageStatus, messageStatuses } from './views/status.ts';

/** Shows messages with their payload, attempts and status, and sends a message again (service.md 6.5). */
export function messageRoutes(app: FastifyInstance, dependencies: PortalDependencies): void {
  listRoute(app, dependencies);
  pageRoutes(app, dependencies);
  againRoutes(app, dependencies);
}

function listRoute(app: FastifyInstance, { pool }: PortalDependencies): void {
  app.get('/messages', async (request, reply) => {
    const { organizationId, frame } = request.portal;
    const query = queryOf(request);
    const endpoints = await readEndpoints(pool, organizationId);
    const filter = readFilter(query, new Set(endpoints.map(({ id }) => id)));
    const choice = readWindow(query, 'any');
    const window = windowOf(choice, frame.now);
    const wrong = 'wrong' in window ? window.wrong : undefined;
    const before = /^\d{1,18}$/.exec(field(query, 'before'))?.[0] ?? null;
    const asked = { ...filter, ...('wrong' in window ? { from: null, until: null } : window) };
    const { messages, more, searchedTo } =
      wrong === undefined ? await readMessages(pool, organizationId, asked, before) : nothingRead;
    const last = searchedTo?.seq ?? (more ? messages.at(-1)?.seq : undefined);
    const body = messageList({
      ...frame,
      filter,
      choice,
      wrong,
      endpoints,
      messages,
      older: last === undefined ? undefined : at(frame.base, query, last),
      searchedTo: searchedTo?.created,
      newest: before === null ? undefined : at(frame.base, query, undefined),
      filtered: choice.choice !== 'any' || Object.values(filter).some((value) => value !== null),
    });
    return show(
      request,
      reply,
      { title: 'Messages', section: 'Messages', body },
      wrong === undefined ? 200 : 400,
    );
  });
}

const nothingRead: MessagePage = { messages: [], more: false, searchedTo: null };

function readFilter(query: URLSearchParams, endpointIds: ReadonlySet<string>) {
  const type = field(query, 'type');
  const status = field(query, 'status');
  const endpointId = field(query, 'endpoint');
  return {
    type: isEventType(type) ? type : null,
    status: (messageStatuses as readonly string[]).includes(status) ? (status as MessageStatus) : null,
    endpointId: endpointIds.has(endpointId) ? endpointId : null,
  };
}

/** The address of the same list, starting with the messages before `before`. */
function at(base: string, query: URLSearchParams, before: string | undefined): string {
  const next = new URLSearchParams([...query].filter(([name, value]) => name !== 'before' && value !== ''));
  if (before !== undefined) next.set('before', before);
  return `${base}/messages${next.size === 0 ? '' : `?${next}`}`;
}

function pageRoutes(app: FastifyInstance, { pool }: PortalDependencies): void {
  const mine = ({ portal, params }: FastifyRequest<ById>) =>
    readMessage(pool, portal.organizationId, params.id);

  app.get<ById>('/messages/:id', async (request, reply) => {
    const { organizationId, frame } = request.portal;
    const message = await mine(request);
    const [standings, attempts] = await Promise.all([
      readStandings(pool, organizationId, message.seq),
      readMessageAttempts(pool, message.seq),
    ]);
    const body = messagePage({ ...frame, message, standings, attempts });
    const notice = noticeFor(request);
    return show(request, reply, { title: message.type, section: 'Messages', notice, body });
  });

  app.get<ById>('/messages/:id/payload', async (request, reply) => {
    const { id, payload } = await mine(request);
    return reply
      .headers({
        ...pageHeaders,
        'content-type': 'application/json',
        'content-disposition': `attachment; filename="${id.replace(/[^\w-]/g, '_')}.json"`,
      })
      .send(payload);
  });
}

function againRoutes(app: FastifyInstance, { pool, clock, dispatcher }: PortalDependencies): void {
  const asked = async (request: FastifyRequest<ById>) => {
    const { organizationId, frame } = request.portal;
    const message = await readMessage(pool, organizationId, request.params.id);
    const endpoint = await readEndpoint(pool, organizationId, field(formOf(request), 'endpoint'));
    return { message, endpoint, base: frame.base, now: toText(clock.now()) };
  };

  app.post<ById>('/messages/:id/resend', async (request, reply) => {
    const { message, endpoint, base, now } = await asked(request);
    await resendMessage(pool, message.seq, endpoint.id, now);
    dispatcher.wake();
    return reply.redirect(`${base}/messages/${message.id}?done=resent`, 303);
  });

  app.post<ById>('/messages/:id/replay-since', async (request, reply) => {
    const { message, endpoint, base, now } = await asked(request);
    const since = { endpointId: endpoint.id, from: null, until: null, sinceSeq: message.seq, now };
    const count = await replayFailed(pool, since, true);
    dispatcher.wake();
    return reply.redirect(
      `${base}/endpoints/${endpoint.id}?done=${count > 0 ? 'replaying' : 'nothing'}`,
      303,
    );
  });
}
