import { html } from 'hono/html';
import { canonicalUuid } from '../../contract/values.ts';
import { agreeing, counted, countedRows, nameInWords } from '../../contract/words.ts';
import { type InferredDeletes, readDeletes } from '../../db/deletes/decide.ts';
import { type DeletedRow, listDeletedRows, sumDeletedRows } from '../../db/deletes/list-rows.ts';
import { consoleBounds } from '../../db/read/bounds.ts';
import { deletionState, describeSum, serviceSays } from '../../operations/decisions.ts';
import { amount } from '../../operations/report/summary.ts';
import { badge, type Markup } from '../../web/parts.ts';
import { type Asking, asked, type MakePage, mayAct } from '../asking.ts';
import { actButton, ago, type Content, nothing, table, text } from '../parts.ts';

/** Which deletions that runs inferred wait for a decision? */
export const deletesPage: MakePage = async (asking) => {
  const { deps, query, health } = asking;
  const given = asked(query, 'run');
  const run = canonicalUuid(given ?? '');
  if (given !== undefined && run === undefined) return undefined;
  const all = query.get('all') === 'yes';
  const found = await readDeletes(deps.db, run === undefined ? { all } : { all: true, run });
  const runs = Map.groupBy(found, ({ runId }) => runId);
  const kept = 'away' in health.warehouse ? 0 : health.warehouse.keptDeletes;
  return {
    title: 'Deletes',
    section: 'Deletes',
    body: html`<div class="head"><div><h1>Deletes</h1><p class="muted">Deletions that are held back: a run found more rows missing than it may delete on its own.</p></div></div>
${found.length === 0 && nothing('Nothing waits for a decision', 'The page of a run shows what the run deleted by itself, and how to undo it.')}
${await Promise.all([...runs].map(([id, groups]) => runSection(asking, id, groups, run !== undefined)))}
${kept > 0 && html`<p class="muted small">${counted(kept, 'row')} ${agreeing(kept, 'is', 'are')} kept although the service no longer has ${agreeing(kept, 'it', 'them')}${!all && html`: <a href="/deletes?all=yes">show all decisions</a>`}.</p>`}
<p class="muted small">Decisions are in the <a href="/log">log</a>.</p>`,
  };
};

async function runSection(
  asking: Asking,
  id: string,
  groups: readonly InferredDeletes[],
  alone: boolean,
): Promise<Markup> {
  const { deps, now } = asking;
  const sums = await sumDeletedRows(deps.db, id);
  return html`<section><div class="head"><h2>${titleOf(id, groups)}</h2>${mayAct(asking) && decisions(id, groups)}</div>
${sums.map((sum) => html`<p>${text(describeSum(sum))}.</p>`)}
${
  alone
    ? await rowTable(asking, id)
    : html`${table(
        `Deletes of run ${id}`,
        [
          {
            name: 'Rows',
            of: ({ resource, rows }) =>
              html`<a class="stretched" href="/deletes?run=${id}">${countedRows(rows, resource)}</a>`,
          },
          { name: 'State', of: ({ state }) => stateOf(state) },
          { name: 'Company', of: ({ companyId, company }) => text(company ?? companyId) },
          { name: 'At the service', of: ({ reason }) => serviceSays(reason === 'listed') },
          { name: 'Found', end: true, of: ({ notedAt }) => ago(notedAt, now) },
        ],
        groups,
        ({ companyId, resource, state, reason }) => [id, companyId, resource, state, reason].join('-'),
      )}<p class="small"><a href="/deletes?run=${id}">Each row, with its cost</a></p>`
}</section>`;
}

const stateOf = (state: string): Markup =>
  badge(state === 'quarantined' ? 'uneasy' : 'plain', deletionState(state));

/** The rows of a run, each with what an operator needs to know for a decision. */
async function rowTable({ deps }: Asking, run: string): Promise<Markup> {
  const rows = await listDeletedRows(deps.db, run, consoleBounds.deletedRows);
  return html`${table(
    `Rows of run ${run}`,
    [
      { name: 'What', of: whatOf },
      {
        name: 'Company',
        of: ({ companyId, company }) =>
          companyId && html`<a href="/companies/${companyId}">${text(company ?? companyId)}</a>`,
      },
      { name: 'Date', of: ({ date }) => date && html`<time>${date}</time>` },
      {
        name: 'Cost',
        end: true,
        of: ({ cost, currency }) => cost !== null && html`${amount(cost)} ${text(currency)}`,
      },
      { name: 'At the service', of: ({ listedAsDeleted }) => serviceSays(listedAsDeleted) },
      { name: 'State', of: ({ state }) => stateOf(state) },
    ],
    rows,
    ({ resource, id, date }) => `${resource}-${id}-${date}`,
  )}${
    rows.length === consoleBounds.deletedRows &&
    html`<p class="muted small">The first ${rows.length.toLocaleString('en')}: <code>metersync deletes list ${run}</code> lists all.</p>`
  }`;
}

const traced: Readonly<Record<string, string>> = {
  documents: 'document',
  connections: 'connection',
  meters: 'meter',
  intervals: 'meter',
};

function whatOf({ resource, id, provider, name, readings }: DeletedRow): Markup {
  const kind = traced[resource];
  const of = [provider, name].filter((part) => part !== null).join(' ');
  const words = html`${of !== '' && text(of)}${readings !== null && html` ${counted(readings, 'reading')}`}<small class="id">${nameInWords(resource)} ${text(id)}</small>`;
  return kind === undefined
    ? words
    : html`<a href="/trace?kind=${kind}&id=${encodeURIComponent(id)}">${words}</a>`;
}

/** Links to the page of a run. A catch-up or a repair also notes deletions, but has no page. */
const titleOf = (id: string, rows: readonly InferredDeletes[]): Content =>
  rows.some(({ isRun }) => isRun)
    ? html`<a href="/runs/${id}">Run ${id}</a>`
    : html`Catch-up or repair <small class="id">${id}</small>`;

function decisions(run: string, rows: readonly InferredDeletes[]): Content {
  const to = (action: string) => `/act/deletes-${action}?run=${run}&back=/deletes`;
  const waits = rows.some(({ state }) => state === 'quarantined');
  const decided = rows.some(({ state }) => state !== 'quarantined');
  return html`<span class="actions">${waits && actButton(to('reject'), 'Keep them')}${waits && actButton(to('approve'), 'Delete them', 'danger')}${decided && actButton(to('undo'), 'Undo')}</span>`;
}
