import { html } from 'hono/html';
import { sqlMessage } from '../db/connection/failures.ts';
import { consoleBounds } from '../db/read/bounds.ts';
import { connectionsNeedingAttention } from '../db/read/companies.ts';
import { badge } from '../web/badge.ts';
import type { Markup } from '../web/markup.ts';
import type { Asking } from './asking.ts';
import { ago, type Content, nothing, rowLink, section, table, text } from './parts.ts';

type Found = Awaited<ReturnType<typeof connectionsNeedingAttention>>;

/** Connections that need attention. If Postgres takes too long for them, the rest of the page is still shown. */
export async function attentionSection({ deps, now }: Asking): Promise<Markup> {
  const made = await connectionsNeedingAttention(deps.db, { limit: consoleBounds.rows }).then(
    (found) => listOf(found, now),
    (error: unknown) => nothing('This cannot be shown now', text(sqlMessage(error))),
  );
  return section('Connections that need attention', made);
}

function listOf({ connections: found, looked }: Found, now: number): Content {
  if (found.length === 0)
    return nothing('No connection needs attention', 'Every connection collects data, or is about to begin.');
  return html`${table(
    'Connections that need attention',
    [
      {
        name: 'Connection',
        of: ({ connectionId, provider, company }) =>
          html`${rowLink(`/trace?kind=connection&id=${connectionId}`, text(provider ?? connectionId))}<small class="id">${text(company)}</small>`,
      },
      {
        name: 'Status',
        of: ({ status, customerMustAct }) => badge(customerMustAct ? 'bad' : 'uneasy', text(status)),
      },
      { name: 'What to do', of: ({ whatToDo }) => text(whatToDo) },
      {
        name: 'Data until',
        of: ({ dataUntil, isLate }) =>
          html`${dataUntil === null ? 'none' : html`<time>${dataUntil}</time>`} ${isLate && badge('uneasy', 'late')}`,
      },
      { name: 'Since', end: true, of: ({ since }) => ago(since, now) },
    ],
    found,
    ({ connectionId }) => connectionId,
  )}${found.length === consoleBounds.rows && html`<p class="muted small">The first ${consoleBounds.rows}${looked === consoleBounds.connectionsMax && ` of ${looked.toLocaleString('en')} that were examined`}.</p>`}`;
}
