import type { ClosedReason, Severity } from '../../contract/names.ts';
import { serverWaits } from '../../contract/retry-policy.ts';
import { formatTime, timeAgo } from '../../contract/times.ts';
import { counted, countedRows, nameInWords } from '../../contract/words.ts';
import { acknowledgeIssue } from '../../db/checks/check-data.ts';
import { type InferredDeletes, readDeletes } from '../../db/deletes/decide.ts';
import {
  type DeletedRow,
  listDeletedRows,
  type SumOfDeleted,
  sumDeletedRows,
} from '../../db/deletes/list-rows.ts';
import { type DataIssue, listDataIssues } from '../../db/read/issues.ts';
import type { AlarmName } from '../../health/findings.ts';
import { verdictOf } from '../../health/verdict.ts';
import {
  acknowledge,
  type Decision,
  decideDeletes,
  deletionState,
  describeDecided,
  describeSum,
  serviceSays,
  subjectOf,
} from '../../operations/decisions.ts';
import { NotBegun, recorded } from '../../operations/recorded.ts';
import { amount } from '../../operations/report/summary.ts';
import { asOperation } from '../command-line.ts';
import { answer, CommandError, UsageError } from '../output.ts';
import { paragraph } from '../terminal.ts';
import { withWarehouse } from '../warehouse.ts';

interface IssuesChosen {
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
    answer(options, { issues }, () => describeIssues(issues, options));
  });
}

async function showIssue(id: number, options: { json?: boolean }): Promise<void> {
  await withWarehouse({ temporal: false }, async ({ db }) => {
    const [issue] = await listDataIssues(db, { id }, 1);
    if (issue === undefined)
      throw new CommandError(`there is no issue ${id}: metersync checks list shows the issues`);
    answer(options, { issue }, () => describeIssue(issue));
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
        throw new NotBegun(`no issue ${id} is open: metersync checks list shows the open issues`);
      },
      () => (undo ? 'no longer acknowledged' : note === undefined ? 'acknowledged' : `acknowledged: ${note}`),
    );
    answer(options, { id, acknowledged: !undo }, () => [
      undo
        ? `Issue ${id} is no longer acknowledged.`
        : `Issue ${id} is acknowledged: it stays open and is counted separately.`,
    ]);
  });
}

interface DeletesOptions {
  readonly all?: boolean;
  readonly json?: boolean;
}

/** `metersync deletes list`: lists the rows that runs found gone from the service, one by one for one run. */
export async function deletesList(run: string | undefined, options: DeletesOptions): Promise<void> {
  const { all = false } = options;
  await withWarehouse({ temporal: false }, async ({ db }) => {
    if (run === undefined) {
      const deletes = await readDeletes(db, { all });
      return answer(options, { deletes }, () => describeDeletes(deletes, all));
    }
    const rows = await listDeletedRows(db, run);
    const sums = await sumDeletedRows(db, run);
    const deletes = await readDeletes(db, { all: true, run });
    answer(options, { deletes, rows, sums }, () => describeRows(run, rows, sums));
  });
}

/** `metersync deletes approve`, `reject` and `undo`: decides on such rows. */
export async function deletesDecide(
  decision: Decision,
  run: string,
  options: { note?: string; json?: boolean },
): Promise<void> {
  const { note } = options;
  await withWarehouse({ temporal: false }, async ({ db, context }) => {
    const done = await recorded(
      db,
      asOperation(context.settings, `deletes ${decision}`, { run }),
      () => decideDeletes(db, decision, run),
      (done) => describeDecided(done, note),
    );
    answer(options, done, () => [describeDecided(done, note)]);
  });
}

/** Describes deletions by run, company and resource. */
function describeDeletes(found: readonly InferredDeletes[], all: boolean): string[] {
  if (found.length === 0) return [all ? 'No run found any deletion.' : 'No deletion waits for a decision.'];
  return [
    ...found.flatMap(({ runId, company, companyId, resource, state, reason, rows, ...of }) => {
      const whose = companyId === null ? '' : `, ${company ?? companyId}`;
      return paragraph(
        '',
        `run ${runId}${whose}: ${countedRows(rows, resource)}, ${serviceSays(reason === 'listed')}, ${deletionState(state)}; for example ${examplesOf(of).join(', ')}`,
      );
    }),
    'To see each row with its cost: metersync deletes list RUN',
  ];
}

const examplesOf = ({ examples, names }: Pick<InferredDeletes, 'examples' | 'names'>): string[] =>
  examples.map((id, at) => (names[at] ? `${names[at]} (${id})` : id));

function describeRows(run: string, rows: readonly DeletedRow[], sums: readonly SumOfDeleted[]): string[] {
  if (rows.length === 0) return [`Run ${run} found no deletion.`];
  const cost = (row: DeletedRow) =>
    row.cost === null ? '' : `${amount(row.cost)} ${row.currency ?? ''}`.trim();
  return [
    ...rows.flatMap((row) => {
      const { company, companyId, resource, provider, name, date, state, id } = row;
      const what = [provider, name, date, cost(row), serviceSays(row.listedAsDeleted)].filter((part) => part);
      return paragraph(
        '',
        `${company ?? companyId ?? 'no company'}: ${nameInWords(resource)} ${id} (${deletionState(state)}): ${what.join(', ')}`,
      );
    }),
    ...sums.map(describeSum),
    ...(rows.some(({ state }) => state === 'quarantined')
      ? [`To decide: metersync deletes approve ${run}, or metersync deletes reject ${run}`]
      : []),
  ];
}

/** `metersync alerts acknowledge`: notes that somebody knows of a finding, or takes that back. */
export async function alertsAcknowledge(
  name: AlarmName,
  options: { key?: string; note?: string; undo?: boolean; json?: boolean },
): Promise<void> {
  const { key, note, undo = false } = options;
  if (undo && note !== undefined) throw new UsageError('--undo withdraws the note, too: leave out --note');
  // Loaded on demand: the other decisions need no Temporal.
  const { healthOf } = await import('../../operations/health.ts');
  await withWarehouse({ temporal: 'if running' }, async ({ db, context: { settings, stack } }) => {
    const temporal = stack.hasTemporal ? stack.temporal : undefined;
    const { databaseUrl } = stack;
    const { answerMs } = serverWaits;
    const health = await healthOf({ settings, databaseUrl, temporal, answerMs, again: true })(db);
    const action = undo ? 'alerts unacknowledge' : 'alerts acknowledge';
    const operation = asOperation(settings, action, { name, key });
    const by = undo ? undefined : { by: operation.actor, note: note ?? null };
    const inWords = (of: readonly unknown[]) =>
      `${counted(of.length, 'finding')} ${undo ? 'no longer acknowledged' : 'acknowledged'}${note === undefined ? '' : `: ${note}`}`;
    const found = await recorded(
      db,
      operation,
      () => acknowledge(db, verdictOf(health), { name, key }, by),
      inWords,
    );
    const findings = found.map(({ alarm, key }) => ({ name: alarm, key }));
    answer(options, { acknowledged: !undo, findings }, () => [inWords(found)]);
  });
}
