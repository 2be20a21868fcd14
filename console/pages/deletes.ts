import { html } from 'hono/html';
import { canonicalUuid } from '../../contract/ids.ts';
import { counted, nameInWords } from '../../contract/words.ts';
import { type InferredDeletes, readDeletes } from '../../db/deletes/decide.ts';
import { badge } from '../../web/badge.ts';
import type { Markup } from '../../web/markup.ts';
import { asked, type MakePage, mayAct } from '../asking.ts';
import { actButton, ago, type Content, nothing, table, text } from '../parts.ts';

/** What that runs found gone waits for a decision? */
export const deletesPage: MakePage = async (asking) => {
  const { deps, query, now } = asking;
  const run = canonicalUuid(asked(query, 'run') ?? '');
  const found = await readDeletes(deps.db, run === undefined ? { all: false } : { all: true, run });
  const runs = Map.groupBy(found, ({ runId }) => runId);
  return {
    title: 'Deletes',
    section: 'Deletes',
    body: html`<div class="head"><div><h1>Deletes</h1><p class="muted">Rows that a run found gone from the service: more at once than may be deleted without somebody.</p></div></div>
${found.length === 0 && nothing('Nothing waits for a decision', 'What a run deletes by itself is on its own page, and can be undone there.')}
${[...runs].map(
  ([
    id,
    rows,
  ]) => html`<section><div class="head"><h2>${titleOf(id, rows)}</h2>${mayAct(asking) && decisions(id, rows)}</div>
${table(
  `Deletes of run ${id}`,
  [
    { name: 'Resource', of: ({ resource }) => nameInWords(resource) },
    { name: 'State', of: ({ state }) => badge(state === 'quarantined' ? 'uneasy' : 'plain', state) },
    {
      name: 'Rows',
      end: true,
      of: ({ resource, rows: count }) => counted(count, resource === 'intervals' ? 'reading' : 'row'),
    },
    {
      name: 'Company',
      of: ({ companyId, company }) =>
        companyId &&
        html`<a href="/companies/${companyId}">${company === null ? html`<small class="id">${companyId}</small>` : text(company)}</a>`,
    },
    {
      name: 'Why',
      of: ({ reason }) => (reason === 'listed' ? 'listed as deleted' : 'absent from its listing'),
    },
    { name: 'For example', of: (row) => examples(row) },
    { name: 'Found', end: true, of: ({ notedAt }) => ago(notedAt, now) },
  ],
  rows,
  ({ companyId, resource, state, reason }) => [id, companyId, resource, state, reason].join('-'),
)}</section>`,
)}
<p class="muted small">Decisions are in the <a href="/log">log</a>.</p>`,
  };
};

/** Links a run; a catch-up or a repair, which notes deletions as well, has no page. */
const titleOf = (id: string, rows: readonly InferredDeletes[]): Content =>
  rows.some(({ isRun }) => isRun)
    ? html`<a href="/runs/${id}">Run ${id}</a>`
    : html`Catch-up or repair <small class="id">${id}</small>`;

function decisions(run: string, rows: readonly InferredDeletes[]): Content {
  const to = (action: string) => `/act/deletes-${action}?run=${run}&back=/deletes`;
  const waits = rows.some(({ state }) => state === 'quarantined');
  const applied = rows.some(({ state }) => state === 'applied');
  return html`<span class="actions">${waits && actButton(to('reject'), 'Keep them')}${waits && actButton(to('approve'), 'Delete them', 'danger')}${applied && actButton(to('undo'), 'Undo')}</span>`;
}

const traced: Readonly<Record<string, string>> = {
  documents: 'document',
  connections: 'connection',
  meters: 'meter',
};

const examples = ({ resource, examples: ids, names }: InferredDeletes): Markup[] =>
  ids.map((id, at) => {
    const kind = traced[resource];
    const words = html`${names[at] && text(names[at])}<small class="id">${text(id)}</small>`;
    return kind === undefined
      ? words
      : html`<a href="/trace?kind=${kind}&id=${encodeURIComponent(id)}">${words}</a>`;
  });
