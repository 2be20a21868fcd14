import type { FastifyInstance } from 'fastify';
import { html, raw } from 'hono/html';
import type { Pool } from 'pg';
import { field, formOf, queryOf } from '../../web/form.ts';
import type { Markup } from '../../web/parts.ts';
import { inTransaction } from '../database.ts';
import {
  type ConnectionState,
  connectionChangePayload,
  connectionPayload,
  type DocumentState,
  documentPayload,
  type EventType,
  eventTypes,
  intervalsPayload,
} from '../events.ts';
import { mint } from '../parts.ts';
import { badRequest, Problem } from '../problem.ts';
import { fromText, type Micros, secondsToMicros, toText } from '../time.ts';
import {
  endpointHead,
  type PortalEndpoint,
  type RecentMessage,
  readEndpoint,
  readRecentExamples,
} from './endpoint.ts';
import { eventMeanings, isEventType } from './endpoints.ts';
import { messageRows, nothingHere } from './parts.ts';
import { payloadText } from './payload.ts';
import { type ById, noticeFor, type PortalDependencies, show } from './session.ts';

const examplesShown = 10;

/** The testing tab (service.md 6.5). */
export function testingRoutes(app: FastifyInstance, dependencies: PortalDependencies): void {
  const { pool, clock, dispatcher } = dependencies;

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
    await sendExample(pool, endpoint.id, type, { messageId: mint.newMessageId(), now: toText(clock.now()) });
    dispatcher.wake();
    return reply.redirect(`${frame.base}/endpoints/${endpoint.id}/testing?type=${type}&done=example`, 303);
  });
}

interface TestingView {
  readonly base: string;
  readonly now: Micros;
  readonly endpoint: PortalEndpoint;
  readonly type: EventType;
  readonly example: string;
  readonly sent: readonly RecentMessage[];
}

/** service.md 6.5: example events of each type, with their payload, and the last results. */
function endpointTesting({ base, now, endpoint, type, example, sent }: TestingView): Markup {
  const address = `${base}/endpoints/${endpoint.id}/testing`;
  const shut = endpoint.state !== 'active';
  const rows = sent.map((one) => ({
    ...one,
    note: String(one.attempts),
  }));
  return html`${endpointHead(base, endpoint, 'testing', now)}
<div class="testing"><nav aria-label="Event types"><h2>Event type</h2><ul class="choices">${eventTypes.map(
    (
      one,
    ) => html`<li><a href="${address}?type=${one}" ${one === type ? raw('aria-current="true"') : ''}><code>${one}</code>
<small>${eventMeanings[one]}</small></a></li>`,
  )}</ul></nav>
<section aria-labelledby="example"><div class="head"><h2 id="example">Example of <code>${type}</code></h2>
<form method="post" action="${address}"><input type="hidden" name="type" value="${type}"><button ${shut ? raw('disabled') : ''}>Send example</button></form></div>
<p class="muted">It names records that do not exist and goes only to this endpoint, regardless of its event types.</p>
${shut && html`<p class="muted">Enable the endpoint to send examples to it.</p>`}
${payloadText(example, `Example payload of ${type}`)}</section></div>
<section aria-labelledby="sent"><h2 id="sent">Examples sent</h2><div id="sent-examples" data-live="1000">${
    rows.length > 0
      ? messageRows(base, rows, now, 'Examples sent to this endpoint', 'Attempts')
      : nothingHere(
          'No example was sent yet',
          'Choose an event type and send it: you see here whether it arrived.',
        )
  }</div></section>`;
}

/** Sends an example event to one endpoint (service.md 6.5). Throws a Problem 409 while it is disabled. */
function sendExample(
  pool: Pool,
  endpointId: string,
  type: EventType,
  made: { readonly messageId: string; readonly now: string },
): Promise<void> {
  return inTransaction(pool, async (client) => {
    const { rows } = await client.query<{ seq: string }>(
      `insert into sandbox.events (id, organization_id, type, created, payload, example)
        select $2, organization_id, $3, $4, $5, true from sandbox.endpoints
        where id = $1 and state = 'active' for update returning seq`,
      [endpointId, made.messageId, type, made.now, JSON.stringify(examplePayload(type, made.now))],
    );
    const [event] = rows;
    if (event === undefined) throw new Problem(409, 'This endpoint is disabled: enable it first.');
    await client.query(
      'insert into sandbox.deliveries (event_seq, endpoint_id, due_at) values ($1, $2, $3)',
      [event.seq, endpointId, made.now],
    );
  });
}

const company = {
  externalId: 'customer-1042',
  id: '4f6c1a52-9f0e-4f43-9d36-6a4f6f5e2b10',
  name: 'Example Foods Inc.',
  publicId: 'b1d7e0c4-52a7-4c0f-8a53-0f2f7d9c6e21',
};
const site = { id: '7c9e6679-7425-40de-944b-e07fc1f90ae7', name: 'Warehouse North' };

/** Returns a payload of an event type with all fields (service.md 2.4 to 2.6), of invented records. */
function examplePayload(type: EventType, now: string): object {
  switch (type) {
    case 'connection.created.v2':
      return connectionPayload(connection('PENDING', now, now));
    case 'connection.updated.v2':
    case 'connection.validated.v2':
      return connectionChangePayload(type, connection('CONNECTED', daysBefore(now, 1), now), ['status'], {
        status: 'PENDING',
      });
    case 'document.created.v2':
      return documentPayload(type, document(now, now));
    case 'document.updated.v2':
      return documentPayload(type, document(daysBefore(now, 30), now), { updated: daysBefore(now, 30) });
    case 'document.deleted.v2':
      return documentPayload(type, document(daysBefore(now, 30), now));
    case 'intervals.synced':
      return intervalsPayload(sync(now));
  }
}

const connection = (status: string, created: string, updated: string): ConnectionState => ({
  id: '2c4b8f0e-4a5d-4c86-b3a4-93e1b6b5f8d7',
  created,
  updated,
  facts: {
    company,
    datasource: { name: 'Pacific Gas & Electric', url: 'https://www.pge.com' },
    externalId: 'connection-77',
    sitesRelations: [{ accountIds: ['1003348862'], datasourceTypes: ['ELECTRICITY'], site }],
    status,
    url: 'https://www.pge.com',
    ...unsent,
  },
});

/** Members of a connection record that no event contains. */
const unsent = {
  statusLastUpdateTime: '',
  statusFirstSeenTime: '',
  statusErrorDetail: '',
  accounts: [],
  country: 'US',
  initialSites: [],
  initialDatasourceTypes: [],
  username: '',
  workflowOwnerEmail: '',
  dataCollectionStartDate: null,
  multiplyByOccupancy: false,
  isActive: true,
};

const document = (created: string, updated: string): DocumentState => ({
  id: '9b2d1f6e-0c57-4f1c-9e57-3c5d9a1e7f42',
  company,
  site,
  created,
  updated,
});

const sync = (now: string) => ({
  meterId: 'e3a1c9d2-6b84-4f0f-a1f7-52c0d4b8e913',
  start: `${daysBefore(now, 1).slice(0, 10)}T00:00:00.000000`,
  end: `${now.slice(0, 10)}T00:00:00.000000`,
  createdCount: 92,
  updatedCount: 4,
  companyExternalId: company.externalId,
  accountNumber: '1003348862',
  granularitySeconds: [900],
  usageUnits: ['kWh'],
  qualities: ['ACTUAL'],
});

const daysBefore = (now: string, days: number): string =>
  toText(fromText(now) - secondsToMicros(days * 86_400));
