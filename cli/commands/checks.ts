import { checkData } from '../../app/check-data.ts';
import { type DataIssue, type DataIssueCheck, listDataIssues, readChecks } from '../../app/warehouse.ts';
import type { Severity } from '../../contract/names.ts';
import { UsageError } from '../context.ts';
import { table } from '../terminal.ts';
import { withWarehouse } from '../warehouse.ts';

export interface IssuesChosen {
  readonly company?: string;
  readonly check?: string;
  readonly severity?: Severity;
  readonly closed?: boolean;
  readonly limit: number;
  readonly json?: boolean;
}

/** `metersync checks list`: what the checks found. */
export async function checksList(options: IssuesChosen): Promise<void> {
  await withWarehouse({ temporal: false }, async ({ db }) => {
    const { company, check, severity, closed, limit } = options;
    const checks = await readChecks(db);
    if (check !== undefined && !checks.some(({ checkName }) => checkName === check)) {
      throw new UsageError(`there is no check ${check}: metersync checks describe lists them`);
    }
    const issues = await listDataIssues(
      db,
      { companyId: company, checkName: check, severity, closed },
      limit,
    );
    if (options.json) console.log(JSON.stringify({ issues }));
    else console.log(describeIssues(issues, options));
  });
}

function describeIssues(issues: readonly DataIssue[], { closed = false, limit }: IssuesChosen): string {
  if (issues.length === 0) return closed ? 'No such issue was closed.' : 'No such issue is open.';
  const rows = issues.map((issue) => [
    ...[issue.severity, issue.checkName, issue.company ?? issue.companyId],
    `${issue.entityType} ${issue.entityId}${issue.subject === '' ? '' : `\n${issue.subject}`}`,
    Object.entries(issue.evidence)
      .map(([key, value]) => `${key} ${value ?? 'none'}`)
      .join('\n'),
    (issue.closedAt ?? issue.openedAt).slice(0, 16),
  ]);
  const head = ['severity', 'check', 'company', 'of', 'evidence', closed ? 'closed' : 'since'];
  const more = issues.length === limit ? `\nThere may be more: --limit ${limit * 2}` : '';
  return `${table(head, rows)}${more}`;
}

/** `metersync checks describe`: what is looked for. */
export async function checksDescribe(options: { json?: boolean }): Promise<void> {
  await withWarehouse({ temporal: false }, async ({ db }) => {
    const checks = await readChecks(db);
    const row = (one: DataIssueCheck) => [one.checkName, one.severity, one.what, one.open];
    if (options.json) console.log(JSON.stringify({ checks }));
    else console.log(table(['check', 'severity', 'finds', 'open'], checks.map(row)));
  });
}

/** `metersync checks run`: opens and closes issues by what the data shows now. */
export async function checksRun(options: { company?: string; json?: boolean }): Promise<void> {
  await withWarehouse({ temporal: false }, async ({ db }) => {
    const refreshed = await checkData(db, options.company);
    const { opened, closed, stillOpen } = refreshed;
    if (options.json) console.log(JSON.stringify(refreshed));
    else console.log(`${opened} issues opened, ${closed} closed, ${stillOpen} open as before.`);
  });
}
