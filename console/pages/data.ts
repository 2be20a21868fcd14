import { html } from 'hono/html';
import { consoleBounds } from '../../contract/limits.ts';
import { countedToMax, countInWords } from '../../contract/words.ts';
import { sqlMessage } from '../../db/failures.ts';
import { connectionsNeedingAttention } from '../../db/read/attention.ts';
import { type IssueCounts, listDataIssues } from '../../db/read/issues.ts';
import { issuesOf } from '../../db/read/status.ts';
import { badge } from '../../web/badge.ts';
import type { Asking, MakePage } from '../asking.ts';
import { ago, type Content, nothing, rowLink, section, table, text } from '../parts.ts';
import { issueTable } from './issues.ts';

/** For those who use the data: what needs somebody, in the words of the views. */
export const dataPage: MakePage = async (asking) => {
  const [connections, bills, issues] = await Promise.all([
    part(() => needingAttention(asking)),
    part(() => lateBills(asking)),
    part(() => openIssues(asking)),
  ]);
  return {
    title: 'Data',
    section: 'Data',
    body: html`<div class="head"><div><h1>Data</h1><p class="muted">What of the data needs somebody, as <code>analytics.connections_needing_attention</code> and <code>ops.open_issues</code> say it.</p></div></div>
${section('Connections that need somebody', connections)}
${section('Late bills', bills)}
${section('Open issues', issues, html`<a href="/issues">All issues</a>`)}`,
  };
};

/** A part that fails, as one that Postgres needs too long for, says so; the others stand. */
async function part(make: () => Promise<Content>): Promise<Content> {
  try {
    return await make();
  } catch (error) {
    return nothing('This cannot be shown now', text(sqlMessage(error)));
  }
}

async function needingAttention({ deps, now }: Asking): Promise<Content> {
  const { connections: found, looked } = await connectionsNeedingAttention(deps.db, consoleBounds.rows);
  if (found.length === 0) return nothing('Every connection collects', 'Nobody has to act.');
  return html`${table(
    'Connections that need somebody',
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
          html`${dataUntil === null ? 'none' : html`<time>${dataUntil}</time>`} ${isLate === true && badge('uneasy', 'late')}`,
      },
      { name: 'Since', end: true, of: ({ since }) => ago(since, now) },
    ],
    found,
    ({ connectionId }) => connectionId,
  )}${found.length === consoleBounds.rows && html`<p class="muted small">The first ${consoleBounds.rows}${looked === consoleBounds.connectionsMax && ` of ${looked.toLocaleString('en')} that were looked at`}.</p>`}`;
}

async function lateBills({ deps, now }: Asking): Promise<Content> {
  const late = await listDataIssues(deps.db, { checkName: 'late_bill', unacknowledged: true }, 20);
  if (late.length === 0)
    return nothing('No bill is late', 'Every meter has the bills that its usual days between bills predict.');
  return html`${await issueTable(deps.db, late, now)}<p><a href="/issues?check=late_bill">All late bills</a></p>`;
}

async function openIssues({ deps, health, now }: Asking): Promise<Content> {
  const issues = await listDataIssues(deps.db, { unacknowledged: true }, 20);
  if (issues.length === 0)
    return nothing('No issue is open', 'The checks found nothing that is not acknowledged.');
  return html`${'away' in health.warehouse ? '' : countsOf(issuesOf(health.warehouse))}${await issueTable(deps.db, issues, now)}`;
}

const countsOf = ({ error, warning, info, acknowledged }: IssueCounts): Content =>
  html`<p>${countedToMax(error, 'error')}, ${countedToMax(warning, 'warning')}, ${countInWords(info)} for information${acknowledged > 0 && `; acknowledged: ${countInWords(acknowledged)} more`}.</p>`;
