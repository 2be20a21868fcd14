import { html } from 'hono/html';
import { checkNames } from '../../contract/check-names.ts';
import { severities } from '../../contract/names.ts';
import { formatTime } from '../../contract/times.ts';
import { nameInWords } from '../../contract/words.ts';
import { sqlMessage } from '../../db/connection/failures.ts';
import { consoleBounds } from '../../db/read/bounds.ts';
import { connectionsNeedingAttention } from '../../db/read/companies.ts';
import { countOpenByWeek, type DataIssue, listDataIssues } from '../../db/read/issues.ts';
import { subjectOf } from '../../operations/decisions.ts';
import { badge, type Markup } from '../../web/parts.ts';
import {
  type Asking,
  asGiven,
  asked,
  givenCompany,
  givenWord,
  isGiven,
  type MakePage,
  mayAct,
  wrongOf,
} from '../asking.ts';
import { issueChart } from '../charts.ts';
import {
  actButton,
  address,
  ago,
  at,
  type Content,
  capital,
  choice,
  facts,
  filters,
  inConsole,
  inFull,
  nothing,
  pager,
  rowLink,
  section,
  severityBadge,
  table,
  text,
  textField,
  unusable,
} from '../parts.ts';

const chartedWeeks = 12;

/** What is wrong, odd or missing in the data itself? */
export const issueList: MakePage = async (asking) => {
  const { deps, query, now } = asking;
  const values = {
    severity: givenWord(query, 'severity', severities),
    check: givenWord(query, 'check', checkNames),
    known: givenWord(query, 'known', ['yes']),
    company: await givenCompany(query, 'company', deps.db),
  };
  const filter = {
    companyId: values.company.value,
    severity: values.severity.value,
    checkName: values.check.value,
    unacknowledged: values.known.value === undefined,
  };
  const after = issueId(asked(query, 'after'));
  const isUsable = wrongOf(values).length === 0;
  const issues = isUsable ? await listDataIssues(deps.db, filter, consoleBounds.rows, after) : [];
  const filtered = isGiven(values);
  const given = asGiven(values);
  const last = issues.length === consoleBounds.rows ? issues.at(-1) : undefined;
  const first = !filtered && after === undefined;
  const open = first ? await countOpenByWeek(deps.db, chartedWeeks) : [];
  return {
    title: 'Issues',
    section: 'Issues',
    head: html`<div class="head"><div><h1>Issues of the data</h1><p class="muted">What the checks found in the data ${values.company.hint === undefined ? 'itself' : `of ${values.company.hint}`}, the most severe first.</p></div></div>
${filters(
  '/issues',
  [
    choice(
      'severity',
      'Severity',
      'Any',
      severities.map((value) => ({ value, words: value })),
      values.severity,
    ),
    choice(
      'check',
      'Check',
      'All checks',
      checkNames.map((value) => ({ value, words: nameInWords(value) })),
      values.check,
    ),
    choice('known', 'Acknowledged', 'Left out', [{ value: 'yes', words: 'Shown last' }], values.known),
    textField('company', 'Company', values.company),
  ],
  values,
)}`,
    body: html`${open.length > 0 && issueChart(open, { now, weeks: chartedWeeks })}${
      !isUsable
        ? unusable('/issues', 'show all issues')
        : issues.length === 0
          ? nothing(
              'No such issue is open',
              filtered
                ? html`<a href="/issues">Show all issues that nobody acknowledged.</a>`
                : 'The checks run after each backfill and reconcile.',
            )
          : issueTable(issues, now)
    }${pager(last && address('/issues', { ...given, after: String(last.id) }), after === undefined ? undefined : address('/issues', given))}
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
          html`${rowLink(`/issues/${issue.id}`, text(inConsole(issue.sentence)))}<small class="id">${text(subjectOf(issue))}</small>`,
      },
      {
        name: 'Severity',
        of: ({ severity, acknowledgedAt }) =>
          html`${severityBadge(severity)} ${acknowledgedAt !== null && badge('plain', 'acknowledged')}`,
      },
      { name: 'Company', of: ({ company, companyId }) => text(company ?? companyId) },
      { name: 'Check', of: ({ checkName }) => nameInWords(checkName) },
      { name: 'Since (UTC)', end: true, of: ({ openedAt }) => at(openedAt, now) },
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
  const more = notSaid(issue).map(
    ([name, value]) => [capital(nameInWords(name)), text(formatTime(value))] as const,
  );
  return {
    title: `Issue ${id}`,
    section: 'Issues',
    body: html`<p class="crumbs"><a href="/issues">Issues</a></p>
<div class="head"><h1>${text(inConsole(issue.sentence))}</h1><span class="badges">${severityBadge(issue.severity)}
${issue.checkName === 'no_time_zone' && html`<a class="button outline small" href="/sites?company=${issue.companyId}">Sites</a>`}
${issue.closedAt === null && mayAct(asking) && (known ? actButton(`/act/issue-unacknowledge?id=${id}&back=${back}`, 'Withdraw acknowledgement') : actButton(`/act/issue-acknowledge?id=${id}&back=${back}`, 'Acknowledge'))}</span></div>
<div class="card">${facts([
      ['Issue', String(id)],
      ['Check', nameInWords(issue.checkName)],
      [
        'Company',
        html`<a href="/companies/${issue.companyId}">${text(issue.company ?? issue.companyId)}</a>`,
      ],
      ...Object.entries(issue.names ?? {}).map(
        ([name, value]) =>
          [capital(nameInWords(name)), value !== issue.entityId && value && text(value)] as const,
      ),
      [
        `${capital(nameInWords(issue.entityType))} id`,
        issue.entityType !== 'company' && html`<code>${text(issue.entityId)}</code>`,
      ],
      ['Opened', inFull(issue.openedAt, now)],
      ['Last seen', inFull(issue.lastSeenAt, now)],
      ['Acknowledged', issue.acknowledgedAt && inFull(issue.acknowledgedAt, now)],
      ['Note', issue.acknowledgedNote && text(issue.acknowledgedNote)],
      ['Closed', issue.closedAt && inFull(issue.closedAt, now)],
    ])}</div>
${more.length > 0 && section('What else the check saw', html`<div class="card">${facts(more)}</div>`)}`,
  };
};

/** The words of a text, without its punctuation. */
const wordsOf = (text: string): string =>
  ` ${text
    .split(/[\s,;:()"]+|\.(?=\s|$)/)
    .filter((word) => word !== '')
    .join(' ')} `;

/** The figures of the evidence that neither the sentence nor the names of the issue have. */
function notSaid({ evidence, sentence, names, subject }: DataIssue): [string, string][] {
  const said = wordsOf([sentence, ...Object.values(names ?? {})].join(' '));
  return Object.entries({ ...evidence, subject }).flatMap(([name, value]): [string, string][] => {
    // The sentence names the last day instead of the first day after it, and a badge the severity.
    if (value === null || value === '' || name === 'until' || name === 'severity') return [];
    const inWords = value.replace(/\b1 (\w+)s\b/g, '1 $1').replace(/T00:00:00(\+00:00|Z)?$/, '');
    return said.includes(wordsOf(inWords)) ? [] : [[name, value]];
  });
}

type Found = Awaited<ReturnType<typeof connectionsNeedingAttention>>;

/** Connections that need attention. If Postgres takes too long for them, the rest of the page is still shown. */
async function attentionSection({ deps, now }: Asking): Promise<Markup> {
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
