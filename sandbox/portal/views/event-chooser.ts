import { html, raw } from 'hono/html';
import type { Markup } from '../../../web/markup.ts';
import { type EventType, eventTypes } from '../../events/payloads.ts';

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
