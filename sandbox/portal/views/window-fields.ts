import { html, raw } from 'hono/html';
import type { Markup } from '../../../web/markup.ts';
import { icons } from '../icons.ts';
import { type WindowChoice, type WindowName, windows } from '../time-window.ts';

/** Fields that choose a time: a usual choice, or a beginning and an end. `name` keeps ids distinct. */
export const windowFields = (
  name: string,
  chosen: WindowChoice,
  offered: readonly WindowName[],
  wrong?: string,
): Markup => html`<div class="when"><div><label for="${name}-when">Time</label>
<select id="${name}-when" name="when" ${wrong === undefined ? '' : raw(`aria-invalid="true" aria-describedby="${name}-wrong"`)}>${offered.map(
  (one) =>
    html`<option value="${one}" ${one === chosen.choice ? raw('selected') : ''}>${windows[one].name}</option>`,
)}</select></div>
<div class="custom"><label for="${name}-from">From (UTC)</label>
<input id="${name}-from" name="from" type="datetime-local" step="1" value="${chosen.from}"></div>
<div class="custom"><label for="${name}-until">Until (UTC)</label>
<input id="${name}-until" name="until" type="datetime-local" step="1" value="${chosen.until}"></div></div>
${wrong !== undefined && html`<p class="field-error" id="${name}-wrong">${icons.warning}${wrong}</p>`}`;
