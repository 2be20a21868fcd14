import { html } from 'hono/html';
import { formatSeconds, rfc3339 } from '../../contract/times.ts';
import { canonicalUuid } from '../../contract/values.ts';
import { counted, countedRows, nameInWords } from '../../contract/words.ts';
import { readDeletes } from '../../db/deletes/decide.ts';
import { consoleBounds } from '../../db/read/bounds.ts';
import { type ListedRun, listEnded, listRunning, readRun, readRunProgress } from '../../db/read/runs.ts';
import { deletionState } from '../../operations/decisions.ts';
import { copyable, type Markup } from '../../web/parts.ts';
import { asked, type MakePage, mayAct } from '../asking.ts';
import { runCharts } from '../charts.ts';
import {
  actButton,
  address,
  at,
  count,
  facts,
  inConsole,
  inFull,
  nothing,
  pager,
  rowLink,
  section,
  stateBadge,
  table,
  text,
} from '../parts.ts';

/** What did the last syncs do? */
export const runList: MakePage = async (asking) => {
  const { deps, query, now } = asking;
  const runId = canonicalUuid(asked(query, 'before') ?? '');
  const finishedAt = asked(query, 'at');
  const before = runId === undefined || finishedAt === undefined ? undefined : { runId, finishedAt };
  const [running, ended] = await Promise.all([
    before === undefined ? listRunning(deps.db) : [],
    listEnded(deps.db, { limit: consoleBounds.rows, before }),
  ]);
  const last = ended.length === consoleBounds.rows ? ended.at(-1) : undefined;
  const next = last && address('/runs', { before: last.runId, at: last.finishedAt ?? '' });
  const rows = [...running, ...ended];
  return {
    title: 'Runs',
    section: 'Runs',
    live: before === undefined,
    body: html`<div class="head"><div><h1>Runs</h1><p class="muted">What each backfill and reconcile did, newest first.</p></div>
${mayAct(asking) && actButton('/act/backfill?back=/runs', 'Backfill')}</div>
${before === undefined && ended.length > 1 && runCharts(ended.slice(0, chartedRuns), (run) => msOf(run, now))}
${
  rows.length === 0
    ? nothing('No run yet', 'The first backfill reads everything.')
    : table(
        'Runs, newest first',
        [
          {
            name: 'Run',
            of: (run) =>
              html`${rowLink(`/runs/${run.runId}`, run.kind)}<small class="id">${run.runId}</small>`,
          },
          {
            name: 'State',
            of: ({ state, errorCode }) =>
              html`${stateBadge(state)} ${errorCode && html`<small>${errorCode}</small>`}`,
          },
          { name: 'Took', of: (run) => took(run, now) },
          { name: 'Rows', of: changes },
          { name: 'Missed', end: true, of: ({ rowsMissed }) => count(rowsMissed) },
          { name: 'Requests', end: true, of: ({ requests }) => count(requests) },
          { name: 'Ended (UTC)', end: true, of: ({ finishedAt }) => at(finishedAt, now) },
        ],
        rows,
        (run) => run.runId,
      )
}${pager(next, before && '/runs')}`,
  };
};

const chartedRuns = 30;

function msOf({ startedAt, finishedAt }: ListedRun, now: number): number {
  const end = finishedAt === null ? now : Date.parse(rfc3339(finishedAt));
  return Math.max(0, end - Date.parse(rfc3339(startedAt)));
}

const took = (run: ListedRun, now: number): string => formatSeconds(msOf(run, now) / 1000);

function changes(run: ListedRun): string {
  const { rowsInserted, rowsChanged, rowsUnchanged, rowsTombstoned, rowsRejected, valuesUnreadable } = run;
  const said = [
    ...(rowsInserted > 0 ? [`${count(rowsInserted)} new`] : []),
    ...(rowsChanged > 0 ? [`${count(rowsChanged)} changed`] : []),
    ...(rowsTombstoned > 0 ? [`${count(rowsTombstoned)} tombstoned`] : []),
    ...(rowsRejected > 0 ? [`${count(rowsRejected)} refused`] : []),
    ...(rowsUnchanged > 0 ? [`${count(rowsUnchanged)} as before`] : []),
    ...(valuesUnreadable > 0 ? [`${counted(valuesUnreadable, 'value')} unreadable`] : []),
  ];
  return said.length === 0 ? 'none' : said.join(', ');
}

export const runPage: MakePage = async ({ deps, params, now }) => {
  const id = canonicalUuid(params.id ?? '');
  const run = id === undefined ? undefined : await readRun(deps.db, id);
  if (run === undefined || id === undefined) return undefined;
  const [progress, deletes] = await Promise.all([
    readRunProgress(deps.db, id),
    readDeletes(deps.db, { all: true, run: id }),
  ]);
  const running = run.state === 'running';
  return {
    title: `Run ${id}`,
    section: 'Runs',
    live: running,
    body: html`<p class="crumbs"><a href="/runs">Runs</a></p>
<div class="head"><h1>${run.kind === 'full' ? 'Full backfill' : 'Reconcile'}</h1>${stateBadge(run.state)}</div>
<div class="card">${facts([
      ['Run', copyable(id, 'run id')],
      ['Began', inFull(run.startedAt, now)],
      ['Ended', run.finishedAt === null ? 'not yet' : inFull(run.finishedAt, now)],
      ['Took', took(run, now)],
      ['Companies', `${count(progress.companiesDone)} of ${count(progress.companies)}`],
      ['Rows', running ? `${count(progress.rows)} so far` : changes(run)],
      ['Missed by events', count(run.rowsMissed)],
      ['Drift', count(run.drift)],
      ['Requests', count(run.requests)],
      ['Workflow', run.workflowId && html`<code>${text(run.workflowId)}</code>`],
      ['Why', run.error && text(inConsole(run.error.slice(0, 2_000)))],
    ])}${running && progress.companies > 0 && html`<progress max="${progress.companies}" value="${progress.companiesDone}" aria-label="Companies read"></progress>`}</div>
${progress.running.length > 0 && section('Being read', html`<ul class="cards">${progress.running.slice(0, 10).map(companyNow)}</ul>`)}
${
  progress.failed.length > 0 &&
  section(
    'Parts that failed',
    html`<ul class="cards">${progress.failed.map(
      ({ name, resource, state, error }) =>
        html`<li class="card"><div class="row"><strong>${text(name ?? 'the list of companies')}, ${nameInWords(resource)}</strong>${stateBadge(state)}</div><p>${text(inConsole(error ?? ''))}</p></li>`,
    )}</ul>`,
  )
}
${deletes.length > 0 && section('Deletes', html`<div class="card"><p>${deletes.map(({ resource, state, rows }) => `${countedRows(rows, resource)} ${deletionState(state)}`).join(', ')}.</p><a href="/deletes?run=${id}">Look at them</a></div>`)}`,
  };
};

const companyNow = ({
  name,
  resource,
  done,
  of,
  unit,
}: Awaited<ReturnType<typeof readRunProgress>>['running'][number]): Markup =>
  html`<li class="card"><div class="row"><strong>${text(name)}</strong><span>${nameInWords(resource)}</span></div>
<p class="meta"><span>${count(Math.floor(done))}${of !== null && ` of ${count(of)}`} ${unit}</span></p>
${of !== null && of > 0 && html`<progress max="${of}" value="${Math.min(done, of)}" aria-label="${`Progress of ${text(name)}`}"></progress>`}</li>`;
