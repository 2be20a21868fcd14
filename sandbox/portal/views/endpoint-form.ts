import { html, raw } from 'hono/html';
import type { Markup } from '../../../web/markup.ts';
import { icons } from '../icons.ts';
import { eventChooser } from './event-chooser.ts';

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
export const newEndpoint = (base: string, draft: EndpointDraft): Markup => html`
<p class="crumbs"><a href="${base}/endpoints">${icons.back}Endpoints</a></p>
<h1>Add endpoint</h1>
<form method="post" action="${base}/endpoints" class="card form" novalidate>
${addressField(draft)}
${eventChooser(draft.eventTypes)}
<div class="actions"><button>Add endpoint</button><a class="button outline" href="${base}/endpoints">Cancel</a></div>
</form>
<form method="post" action="${base}/inboxes" class="aside"><p>No server yet? A temporary inspection URL shows you live what arrives.</p>
<button class="outline">${icons.inbox}Create an inspection URL</button></form>`;
