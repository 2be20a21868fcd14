import { html } from 'hono/html';
import { checkNames } from '../../contract/check-names.ts';
import { canonicalUuid } from '../../contract/ids.ts';
import { severities } from '../../contract/names.ts';
import { nameInWords } from '../../contract/words.ts';
import { consoleBounds } from '../../db/read/bounds.ts';
import { countOpenByWeek, type DataIssue, listDataIssues } from '../../db/read/issues.ts';
import { subjectOf } from '../../operations/issue-subjects.ts';
import { badge } from '../../web/badge.ts';
import type { Markup } from '../../web/markup.ts';
import { asked, type MakePage, mayAct, oneOf } from '../asking.ts';
import { attentionSection } from '../attention.ts';
import { issueChart } from '../charts.ts';
import {
  actButton,
  address,
  ago,
  choice,
  facts,
  filters,
  inFull,
  nothing,
  pager,
  rowLink,
  section,
  severityBadge,
  table,
  text,
  textField,
} from '../parts.ts';

const chartedWeeks = 12;

/** What is wrong, odd or missing in the data itself? */
export const issueList: MakePage = async (asking) => {
  const { deps, query, now } = asking;
  const companyId = canonicalUuid(asked(query, 'company') ?? '');
  const filter = {
    companyId,
    severity: oneOf(query, 'severity', severities),
    checkName: oneOf(query, 'check', checkNames),
    unacknowledged: query.get('known') !== 'yes',
  };
  const after = issueId(asked(query, 'after'));
  const issues = await listDataIssues(deps.db, filter, consoleBounds.rows, after);
  const values = {
    company: companyId,
    severity: filter.severity,
    check: filter.checkName,
    known: filter.unacknowledged ? undefined : 'yes',
  };
  const filtered = Object.values(values).some((value) => value !== undefined);
  const last = issues.length === consoleBounds.rows ? issues.at(-1) : undefined;
  const first = !filtered && after === undefined;
  const open = first ? await countOpenByWeek(deps.db, chartedWeeks) : [];
  return {
    title: 'Issues',
    section: 'Issues',
    head: html`<div class="head"><div><h1>Issues of the data</h1><p class="muted">What the checks found in the data itself, the most severe first.</p></div></div>
${filters(
  '/issues',
  [
    choice(
      'severity',
      'Severity',
      'Any',
      severities.map((value) => ({ value, words: value })),
      filter.severity,
    ),
    choice(
      'check',
      'Check',
      'All checks',
      checkNames.map((value) => ({ value, words: nameInWords(value) })),
      filter.checkName,
    ),
    choice('known', 'Acknowledged', 'Left out', [{ value: 'yes', words: 'Shown last' }], values.known),
    textField('company', 'Company', companyId),
  ],
  filtered,
)}`,
    body: html`${open.length > 0 && issueChart(open)}${
      issues.length === 0
        ? nothing(
            'No such issue is open',
            filtered
              ? html`<a href="/issues">Show all issues that nobody acknowledged.</a>`
              : 'The checks run after each backfill and reconcile.',
          )
        : issueTable(issues, now)
    }${pager(last && address('/issues', { ...values, after: String(last.id) }), after === undefined ? undefined : address('/issues', values))}
${first && (await attentionSection(asking))}`,
  };
};

/** Names with each issue what it is about, because several issues of a company can have the same sentence. */
export const issueTable = (issues: readonly DataIssue[], now: number): Markup =>
  table(
    'Issues, the most severe first',
    [
      {
        name: 'Issue',
        of: (issue) =>
          html`${rowLink(`/issues/${issue.id}`, text(issue.sentence))}<small class="id">${text(subjectOf(issue))}</small>`,
      },
      {
        name: 'Severity',
        of: ({ severity, acknowledgedAt }) =>
          html`${severityBadge(severity)} ${acknowledgedAt !== null && badge('plain', 'acknowledged')}`,
      },
      { name: 'Company', of: ({ company, companyId }) => text(company ?? companyId) },
      { name: 'Check', of: ({ checkName }) => nameInWords(checkName) },
      { name: 'Since', end: true, of: ({ openedAt }) => ago(openedAt, now) },
    ],
    issues,
    ({ id }) => String(id),
  );

const issueId = (value: string | undefined): number | undefined =>
  value !== undefined && /^\d{1,9}$/.test(value) ? Number(value) : undefined;

export const issuePage: MakePage = async (asking) => {
  const { deps, params, now } = asking;
  const id = issueId(params.id);
  const [issue] = id === undefined ? [] : await listDataIssues(deps.db, { id }, 1);
  if (issue === undefined || id === undefined) return undefined;
  const known = issue.acknowledgedAt !== null;
  const back = `/issues/${id}`;
  return {
    title: `Issue ${id}`,
    section: 'Issues',
    body: html`<p class="crumbs"><a href="/issues">Issues</a></p>
<div class="head"><h1>${text(issue.sentence)}</h1><span class="badges">${severityBadge(issue.severity)}
${issue.closedAt === null && mayAct(asking) && (known ? actButton(`/act/issue-unacknowledge?id=${id}&back=${back}`, 'Withdraw acknowledgement') : actButton(`/act/issue-acknowledge?id=${id}&back=${back}`, 'Acknowledge'))}</span></div>
<div class="card">${facts([
      ['Issue', String(id)],
      ['Check', nameInWords(issue.checkName)],
      [
        'Company',
        html`<a href="/companies/${issue.companyId}">${text(issue.company ?? issue.companyId)}</a>`,
      ],
      ...Object.entries(issue.names ?? {}).map(
        ([name, value]) => [nameInWords(name), value && text(value)] as const,
      ),
      [nameInWords(issue.entityType), html`<code>${text(issue.entityId)}</code>`],
      ['Subject', issue.subject && text(issue.subject)],
      ['Since', inFull(issue.openedAt, now)],
      ['Last seen', inFull(issue.lastSeenAt, now)],
      ['Acknowledged', issue.acknowledgedAt && inFull(issue.acknowledgedAt, now)],
      ['Note', issue.acknowledgedNote && text(issue.acknowledgedNote)],
      ['Closed', issue.closedAt && inFull(issue.closedAt, now)],
    ])}</div>
${section('Evidence', html`<div class="card">${facts(Object.entries(issue.evidence ?? {}).map(([name, value]) => [nameInWords(name), text(value ?? 'none')] as const))}</div>`)}`,
  };
};
