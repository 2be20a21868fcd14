import type { ClosedReason, Severity } from '../../contract/names.ts';
import { formatTime, timeAgo } from '../../contract/times.ts';
import { nameInWords } from '../../contract/words.ts';
import { acknowledgeIssue } from '../../db/checks/check-data.ts';
import { type DataIssue, listDataIssues } from '../../db/read/issues.ts';
import { subjectOf } from '../../operations/issue-subjects.ts';
import { Refused, recorded } from '../../operations/recorded.ts';
import { asOperation } from '../as-operation.ts';
import { CommandError, UsageError } from '../errors.ts';
import { print, printJson } from '../print.ts';
import { paragraph } from '../terminal.ts';
import { withWarehouse } from '../warehouse.ts';

export interface IssuesChosen {
  readonly company?: string;
  readonly check?: string;
  readonly severity?: Severity;
  readonly closed?: boolean;
  readonly unacknowledged?: boolean;
  readonly limit: number;
  readonly json?: boolean;
}

/** `metersync checks list`: lists the issues that the checks found, or prints everything about one. */
export async function checksList(id: number | undefined, options: IssuesChosen): Promise<void> {
  if (id !== undefined) return await showIssue(id, options);
  await withWarehouse({ temporal: false }, async ({ db }) => {
    const { company, check, severity, closed, unacknowledged, limit } = options;
    const issues = await listDataIssues(
      db,
      { companyId: company, checkName: check, severity, closed, unacknowledged },
      limit,
    );
    if (options.json) printJson({ issues });
    else print(...describeIssues(issues, options));
  });
}

async function showIssue(id: number, options: { json?: boolean }): Promise<void> {
  await withWarehouse({ temporal: false }, async ({ db }) => {
    const [issue] = await listDataIssues(db, { id }, 1);
    if (issue === undefined)
      throw new CommandError(`there is no issue ${id}: metersync checks list shows the issues`);
    if (options.json) printJson({ issue });
    else print(...describeIssue(issue));
  });
}

function describeIssue(issue: DataIssue): string[] {
  const { id, severity, checkName, companyId, entityType, entityId, subject, evidence } = issue;
  const facts = Object.entries(evidence).map(([key, value]) => `  ${nameInWords(key)}: ${value ?? 'none'}`);
  return [
    `issue ${id}, ${severity}, ${checkName}: ${issue.sentence}`,
    `company: ${issue.company ?? 'no name'} (${companyId})`,
    ...Object.entries(issue.names ?? {}).flatMap(([name, value]) =>
      value === null ? [] : [`${name}: ${value}`],
    ),
    `${entityType}: ${entityId}`,
    ...(subject === '' ? [] : [`subject: ${subject}`]),
    ...(facts.length === 0 ? [] : ['evidence:', ...facts]),
    `since: ${timeAgo(issue.openedAt)}; last seen: ${timeAgo(issue.lastSeenAt)}`,
    ...(issue.closedAt === null ? openAs(issue).slice(1) : [`closed: ${closedAs(issue).join(', ')}`]),
  ];
}

function describeIssues(issues: readonly DataIssue[], { closed = false, limit }: IssuesChosen): string[] {
  if (issues.length === 0) return [closed ? 'No such issue was closed.' : 'No such issue is open.'];
  const idWidth = Math.max(...issues.map(({ id }) => String(id).length));
  const lines = issues.flatMap((issue) => {
    const when = closed ? `closed ${closedAs(issue).join(', ')}` : `since ${openAs(issue).join(', ')}`;
    return paragraph(
      `${String(issue.id).padStart(idWidth)}  ${issue.severity.padEnd(7)}  `,
      `${[issue.company ?? issue.companyId, subjectOf(issue) ?? []].flat().join(', ')}: ${issue.sentence} (${when})`,
    );
  });
  const more = issues.length === limit ? [`There may be more: --limit ${limit * 2}`] : [];
  return [...lines, ...more];
}

function openAs({ openedAt, acknowledgedAt, acknowledgedNote }: DataIssue): string[] {
  const acknowledged = acknowledgedAt === null ? [] : [`acknowledged ${formatTime(acknowledgedAt)}`];
  return [formatTime(openedAt), ...acknowledged, ...(acknowledgedNote === null ? [] : [acknowledgedNote])];
}

const reasons: Readonly<Record<ClosedReason, string>> = {
  evidence_gone: 'evidence gone',
  check_off: 'check off',
  check_removed: 'a check that no longer exists',
};

function closedAs({ closedAt, closedReason }: DataIssue): string[] {
  return [formatTime(closedAt ?? ''), ...(closedReason === null ? [] : [reasons[closedReason]])];
}

/** `metersync checks acknowledge`: notes that somebody knows of an issue, or withdraws the note. */
export async function checksAcknowledge(
  id: number,
  options: { note?: string; undo?: boolean; json?: boolean },
): Promise<void> {
  const { note, undo = false } = options;
  if (undo && note !== undefined) throw new UsageError('--undo withdraws the note, too: leave out --note');
  await withWarehouse({ temporal: false }, async ({ db, context }) => {
    await recorded(
      db,
      asOperation(context.settings, undo ? 'issue unacknowledge' : 'issue acknowledge', { id: String(id) }),
      async () => {
        if (await acknowledgeIssue(db, id, { note, undo })) return;
        throw new Refused(`no issue ${id} is open: metersync checks list shows the open issues`);
      },
      () => (undo ? 'no longer acknowledged' : note === undefined ? 'acknowledged' : `acknowledged: ${note}`),
    );
    if (options.json) printJson({ id, acknowledged: !undo });
    else
      print(
        undo
          ? `Issue ${id} is no longer acknowledged.`
          : `Issue ${id} is acknowledged: it stays open and is counted separately.`,
      );
  });
}
