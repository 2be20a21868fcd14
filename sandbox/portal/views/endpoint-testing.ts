import { html, raw } from 'hono/html';
import type { Markup } from '../../../web/markup.ts';
import { type EventType, eventTypes } from '../../events/payloads.ts';
import type { Micros } from '../../timestamps.ts';
import { payloadText } from '../payload.ts';
import type { RecentMessage } from '../read/activity.ts';
import type { PortalEndpoint } from '../read/endpoints.ts';
import { endpointHead } from './endpoint-head.ts';
import { eventMeanings } from './event-chooser.ts';
import { messageRows, nothingHere } from './message-rows.ts';

export interface TestingView {
  readonly base: string;
  readonly now: Micros;
  readonly endpoint: PortalEndpoint;
  readonly type: EventType;
  readonly example: string;
  readonly sent: readonly RecentMessage[];
}

/** service.md 6.5: example events of each type, with their payload, and the last results. */
export function endpointTesting({ base, now, endpoint, type, example, sent }: TestingView): Markup {
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
