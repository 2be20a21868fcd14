import type { FastifyInstance } from 'fastify';
import { html, raw } from 'hono/html';
import { field, formOf } from '../../web/form.ts';
import { badge, type Markup, visibleText } from '../../web/parts.ts';
import { addEndpoint, wrongWithAddress } from '../delivery/endpoints.ts';
import { type EventType, eventTypes } from '../events.ts';
import { mint } from '../parts.ts';
import { badRequest } from '../problem.ts';
import { type Micros, toText } from '../time.ts';
import { type Activity, type PortalEndpoint, readActivity, readEndpoints } from './endpoint.ts';
import { showOverview } from './overview.ts';
import { endpointBadge, icons, timeAgo } from './parts.ts';
import { type ById, noticeFor, type PortalDependencies, show } from './session.ts';

/** The list of endpoints, the form that adds an endpoint, and the details page of each. */
export function endpointRoutes(app: FastifyInstance, dependencies: PortalDependencies): void {
  const { pool, clock, dispatcher } = dependencies;

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
    const made = { id: mint.newEndpointId(), secret: mint.newSecret(), now: toText(clock.now()) };
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

interface EndpointListView {
  readonly base: string;
  readonly now: Micros;
  readonly endpoints: readonly PortalEndpoint[];
  readonly activity: ReadonlyMap<string, Activity>;
}

/** All endpoints with their state and the results of their newest messages, or what to do if there is none. */
function endpointList(view: EndpointListView): Markup {
  const { base, endpoints } = view;
  if (endpoints.length === 0) return noEndpoints(base);
  return html`<div class="head"><div><h1>Endpoints</h1>
<p class="muted">Where your events are sent. Each endpoint has its own secret and its own choice of event types.</p></div>
<a class="button" href="${base}/endpoints/new">${icons.plus}Add endpoint</a></div>
<ul class="cards" id="endpoints" data-live="3000">${endpoints.map((one) => card(view, one))}</ul>`;
}

function card({ base, now, activity }: EndpointListView, endpoint: PortalEndpoint): Markup {
  const { id, url, state, failingSince, eventTypes, inboxToken } = endpoint;
  const done = activity.get(id);
  return html`<li class="card" id="${id}">
<div class="row"><a class="title stretched" href="${base}/endpoints/${id}"><bdi>${visibleText(url)}</bdi></a>
<span class="badges">${inboxToken !== null && badge('busy', 'Inspection URL')}${endpointBadge(state, failingSince)}</span></div>
<p class="meta"><span>${eventChoice(eventTypes)}</span>${figures(done)}
<span>${done?.lastAt ? html`Last attempt ${timeAgo(done.lastAt, now)}` : 'No attempts yet'}</span></p></li>`;
}

function figures(activity: Activity | undefined): Markup | '' {
  if (activity === undefined) return '';
  const { delivered, failed, open } = activity;
  return html`<span><b>${delivered}</b> delivered</span>${failed > 0 && html`<span class="bad-text"><b>${failed}</b> failed</span>`}
${open > 0 && html`<span><b>${open}</b> on the way</span>`}`;
}

/** service.md 6.1.2: no chosen type means all. */
const eventChoice = (eventTypes: readonly string[]): string =>
  eventTypes.length === 0
    ? 'All events'
    : eventTypes.length === 1
      ? (eventTypes[0] ?? '')
      : `${eventTypes.length} event types`;

const noEndpoints = (base: string): Markup => html`<section class="empty">
<p class="big-icon">${icons.endpoint}</p>
<h1>Receive your first event</h1>
<p>Events about your connections, documents and meters are sent to the endpoints that you add here.</p>
<div class="actions"><a class="button" href="${base}/endpoints/new">${icons.plus}Add endpoint</a></div>
<hr>
<h2>No server yet?</h2>
<p>A temporary inspection URL is a working endpoint that shows you live what arrives, for 7 days.</p>
<form method="post" action="${base}/inboxes"><button class="outline">${icons.inbox}Create an inspection URL</button></form>
</section>`;

export interface EndpointDraft {
  readonly url: string;
  readonly eventTypes: readonly string[];
  /** What is wrong with the address. */
  readonly wrong?: string | undefined;
}

/** The field for an endpoint's address, with what is wrong next to it. */
export const addressField = ({
  url,
  wrong,
}: EndpointDraft): Markup => html`<label for="url">Endpoint URL</label>
<input id="url" name="url" type="text" inputmode="url" value="${url}" placeholder="https://example.com/webhooks" required
autocomplete="off" autocapitalize="none" spellcheck="false" ${wrong === undefined ? '' : raw('aria-invalid="true" autofocus')}
aria-describedby="url-hint${wrong === undefined ? '' : ' url-wrong'}">
${wrong !== undefined && html`<p class="field-error" id="url-wrong">${icons.warning}${wrong}</p>`}
<p class="muted small" id="url-hint">Receives a POST for each event and answers with any 2xx status within 15 seconds.</p>`;

/** The form that adds an endpoint. It also says why an address was refused. */
const newEndpoint = (base: string, draft: EndpointDraft): Markup => html`
<p class="crumbs"><a href="${base}/endpoints">${icons.back}Endpoints</a></p>
<h1>Add endpoint</h1>
<form method="post" action="${base}/endpoints" class="card form" novalidate>
${addressField(draft)}
${eventChooser(draft.eventTypes)}
<div class="actions"><button>Add endpoint</button><a class="button outline" href="${base}/endpoints">Cancel</a></div>
</form>
<form method="post" action="${base}/inboxes" class="aside"><p>No server yet? A temporary inspection URL shows you live what arrives.</p>
<button class="outline">${icons.inbox}Create an inspection URL</button></form>`;

/** When each type of event is emitted (service.md 6.2). */
export const eventMeanings: Readonly<Record<EventType, string>> = {
  'connection.created.v2': 'A connection is created.',
  'connection.updated.v2': 'Any field of a connection changes.',
  'connection.validated.v2': 'The status of a connection changes.',
  'document.created.v2': 'A new document is available.',
  'document.updated.v2': 'A document was processed again and differs.',
  'document.deleted.v2': 'A document is deleted.',
  'intervals.synced': 'Interval data of a meter is inserted or updated.',
};

/** Check boxes for event types. Choosing none means all of them (service.md 6.1.2). */
export const eventChooser = (chosen: readonly string[]): Markup => html`<fieldset class="chooser">
<legend>Event types</legend>
<p class="muted small" id="types-hint">Choose none to receive all events, also those that are added later.</p>
${eventTypes.map(
  (type) => html`<label class="option"><input type="checkbox" name="type" value="${type}"
${chosen.includes(type) ? raw('checked') : ''}><span><code>${type}</code><small>${eventMeanings[type]}</small></span></label>`,
)}
</fieldset>`;

export const isEventType = (text: string): text is EventType =>
  (eventTypes as readonly string[]).includes(text);

/** The event types that were ticked in a form. Throws a Problem 400 if one does not exist. */
export function chosenTypes(form: URLSearchParams): EventType[] {
  const chosen = form.getAll('type');
  if (!chosen.every(isEventType)) throw badRequest('There is no such event type.');
  return eventTypes.filter((type) => chosen.includes(type));
}
