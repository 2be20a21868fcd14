import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { html, raw } from 'hono/html';
import { field, formOf, queryOf } from '../../web/form.ts';
import { copyable, type Markup } from '../../web/parts.ts';
import { inTransaction } from '../database.ts';
import {
  rotateSecret,
  rotationHours,
  setEndpointState,
  updateEndpoint,
  wrongWithAddress,
} from '../delivery/endpoints.ts';
import { mint } from '../parts.ts';
import { badRequest } from '../problem.ts';
import { fromText, type Micros, secondsToMicros, toText } from '../time.ts';
import { endpointHead, type PortalEndpoint, readEndpoint } from './endpoint.ts';
import { addressField, chosenTypes, type EndpointDraft, eventChooser } from './endpoints.ts';
import { readableTime } from './parts.ts';
import { type ById, noticeFor, type PortalDependencies, show } from './session.ts';

/** Changes an endpoint's address, types and secret; disables, enables or removes it (service.md 3.2). */
export function settingsRoutes(app: FastifyInstance, dependencies: PortalDependencies): void {
  const { pool, clock, dispatcher } = dependencies;

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
    await rotateSecret(pool, endpoint.id, mint.newSecret(), until);
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

interface SettingsView {
  readonly base: string;
  readonly now: Micros;
  readonly endpoint: PortalEndpoint;
  readonly draft: EndpointDraft;
  readonly secretShown: boolean;
  /** The name of the question to show, for browsers without script. */
  readonly asked: string;
}

/** An endpoint's settings: address, event types, secret, and buttons to disable or remove it. */
function endpointSettings(view: SettingsView): Markup {
  const { base, now, endpoint, draft } = view;
  const address = `${base}/endpoints/${endpoint.id}`;
  return html`${endpointHead(base, endpoint, 'settings', now)}
<section aria-labelledby="what"><h2 id="what">Address and events</h2>
<form method="post" action="${address}" class="card form" novalidate>
${endpoint.inboxToken === null ? addressField(draft) : html`<input type="hidden" name="url" value="${endpoint.url}">`}
${eventChooser(draft.eventTypes)}
<div class="actions"><button>Save changes</button></div></form></section>
${signing(view, address)}
${ending(view, address)}`;
}

function signing({ endpoint, secretShown, now, asked }: SettingsView, address: string): Markup {
  const { secret, previousSecretUntil } = endpoint;
  const both = previousSecretUntil !== null && fromText(previousSecretUntil) > now;
  return html`<section aria-labelledby="signing"><h2 id="signing">Signing secret</h2><div class="card">
<p>Every message is signed with it. Verify the signature before you trust a message.</p>
<p class="secret">${
    secretShown
      ? html`${copyable(secret, 'signing secret')} <a href="${address}/settings#signing">Hide</a>`
      : html`<code aria-label="hidden">whsec_••••••••••••••••••••••••</code>
<a class="button outline small" href="${address}/settings?secret=shown#signing">Reveal secret</a>`
  }</p>
${both && html`<p class="muted">The secret before this one signs too until ${readableTime(previousSecretUntil)}.</p>`}
${question({
  name: 'rotate',
  open: asked === 'rotate',
  ask: html`Rotate secret`,
  kind: 'outline',
  address,
  title: 'Rotate the signing secret?',
  words: `A new secret is made. The present one stays valid for 24 hours, and messages are signed with both, so that you can change your receiver without losing any.${both ? ' The one before it stops working at once.' : ''}`,
  action: `${address}/secret`,
  fields: html``,
  yes: 'Rotate secret',
})}</div></section>`;
}

function ending({ endpoint, asked }: SettingsView, address: string): Markup {
  const active = endpoint.state === 'active';
  return html`<section aria-labelledby="ending"><h2 id="ending">Pause or remove</h2><div class="card lines">
<div class="row"><p><strong>${active ? 'Disable this endpoint' : 'This endpoint is disabled'}</strong>
<small>${active ? 'Nothing more is sent to it and remaining attempts are cancelled. You can enable it again.' : 'Enable it to receive messages again.'}</small></p>
${
  active
    ? question({
        name: 'disable',
        open: asked === 'disable',
        ask: html`Disable endpoint`,
        kind: 'outline',
        address,
        title: 'Disable this endpoint?',
        words:
          'Its remaining attempts are cancelled, and events that happen while it is disabled are not sent to it. You can recover them when it is enabled again.',
        action: `${address}/state`,
        fields: html`<input type="hidden" name="state" value="disabled">`,
        yes: 'Disable endpoint',
      })
    : html`<form method="post" action="${address}/state"><input type="hidden" name="state" value="active"><button class="outline">Enable endpoint</button></form>`
}</div>
<div class="row"><p><strong>Remove this endpoint</strong><small>Its remaining attempts are cancelled. This can’t be undone.</small></p>
${question({
  name: 'remove',
  open: asked === 'remove',
  ask: html`Remove endpoint`,
  kind: 'danger',
  address,
  title: 'Remove this endpoint?',
  words:
    'Nothing more is sent to it, its remaining attempts are cancelled and its secret is gone. This can’t be undone.',
  action: `${address}/remove`,
  fields: html``,
  yes: 'Remove endpoint',
})}</div></div></section>`;
}

interface Question {
  readonly name: string;
  readonly open: boolean;
  readonly ask: Markup;
  readonly kind: string;
  readonly address: string;
  readonly title: string;
  readonly words: string;
  readonly action: string;
  readonly fields: Markup;
  readonly yes: string;
}

/** A button that asks a question first; without script, on the same page that its link opens. */
const question = (one: Question): Markup => html`
<a class="button ${one.kind}" href="${one.address}/settings?ask=${one.name}" data-dialog="${one.name}">${one.ask}</a>
<dialog id="${one.name}" aria-labelledby="${one.name}-title" ${one.open ? raw('open') : ''}><article>
<h3 id="${one.name}-title">${one.title}</h3><p>${one.words}</p>
<form method="post" action="${one.action}">${one.fields}<div class="actions">
<button class="${one.kind.includes('danger') ? 'danger' : ''}">${one.yes}</button>
<a class="button outline" href="${one.address}/settings" data-close>Cancel</a></div></form></article></dialog>`;
