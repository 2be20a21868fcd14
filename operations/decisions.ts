import { counted, countedRows } from '../contract/words.ts';
import type { Database } from '../db/connection/connect.ts';
import { approveDeletes, readDeletes, rejectDeletes, undoDeletes } from '../db/deletes/decide.ts';
import type { SumOfDeleted } from '../db/deletes/list-rows.ts';
import type { DataIssue } from '../db/read/issues.ts';
import { acknowledgeFinding, unacknowledgeFinding } from '../db/watch/alarms.ts';
import type { AlarmName } from '../health/findings.ts';
import { acknowledgeable, type Finding, needsNobody, type Verdict } from '../health/verdict.ts';
import { NotBegun } from './recorded.ts';
import { amount } from './report/summary.ts';

/** Which findings: all findings of an alarm, or only the finding with this key. */
interface Named {
  readonly name: AlarmName;
  readonly key?: string | undefined;
}

/**
 * Acknowledges findings, or withdraws that if `by` (who acknowledges, and why) is undefined.
 * @throws NotBegun if no finding of the name can be acknowledged
 */
export async function acknowledge(
  db: Database,
  verdict: Verdict,
  named: Named,
  by: { readonly by: string; readonly note: string | null } | undefined,
): Promise<readonly Finding[]> {
  const found = verdict.findings.filter(
    ({ alarm, key }) => alarm === named.name && (named.key === undefined || key === named.key),
  );
  const of = found.filter(({ word, acknowledged }) =>
    by === undefined ? acknowledged !== null : word === acknowledgeable || acknowledged !== null,
  );
  if (of.length === 0) throw new NotBegun(whyNone(named, found, by === undefined));
  for (const finding of of)
    if (by === undefined) await unacknowledgeFinding(db, finding);
    else await acknowledgeFinding(db, finding, by);
  return of;
}

function whyNone({ name, key }: Named, found: readonly Finding[], undoes: boolean): string {
  const of = `${name}${key === undefined ? '' : ` ${key}`}`;
  if (found.length === 0) return `there is no finding ${of} now: metersync status lists the findings`;
  if (undoes) return `nobody acknowledged ${of}`;
  return found.every(needsNobody)
    ? `${of} need not be acknowledged, because nobody has to act`
    : `${of} cannot be acknowledged, because it stops everything: fix its cause`;
}

/** A decision on rows that a run found gone. */
export type Decision = 'approve' | 'reject' | 'undo';

type Decided =
  | { readonly tombstoned: number; readonly spared: number }
  | { readonly kept: number }
  | { readonly revived: number; readonly waiting: number };

/** Decides on the rows that a run found missing. Throws NotBegun if there is nothing to decide. */
export async function decideDeletes(db: Database, decision: Decision, run: string): Promise<Decided> {
  const ofRun = await readDeletes(db, { all: true, run });
  if (!ofRun.some(({ state }) => canDecide(decision, state))) {
    const has =
      ofRun.length === 0
        ? 'no deletions'
        : `no deletions that ${decision === 'undo' ? 'were decided' : 'wait for a decision'}`;
    throw new NotBegun(`run ${run} has ${has}: metersync deletes list --all lists all deletions`);
  }
  if (decision === 'approve') return await approveDeletes(db, run);
  if (decision === 'reject') return await rejectDeletes(db, run);
  return await undoDeletes(db, run);
}

/** Whether a decision is about deletions in a state; an undo is about all decided deletions. */
export const canDecide = (decision: Decision, state: string): boolean =>
  (decision === 'undo') === (state !== 'quarantined');

/** Says what a decision did, with the note of the person who decided. */
export function describeDecided(done: Decided, note?: string): string {
  return `${effectOf(done)}${note === undefined ? '' : ` Note: ${note}`}`;
}

function effectOf(done: Decided): string {
  if ('tombstoned' in done) {
    const skipped =
      done.spared === 0
        ? ''
        : `; ${counted(done.spared, 'row')} not deleted, because the service listed or reported ${done.spared === 1 ? 'it' : 'them'} meanwhile; the next run checks again`;
    return `${counted(done.tombstoned, 'row')} deleted${skipped}.`;
  }
  const keeping = 'until the service lists them again; metersync deletes undo asks for a decision again.';
  if ('kept' in done) return `${counted(done.kept, 'row')} kept ${keeping}`;
  if (done.waiting > 0)
    return `${counted(done.waiting, 'row')} ${done.waiting === 1 ? 'waits' : 'wait'} for a decision again.`;
  return `${counted(done.revived, 'row')} restored, and kept ${keeping}`;
}

const states: Readonly<Record<string, string>> = {
  quarantined: 'held back',
  applied: 'deleted',
  rejected: 'kept',
  undone: 'restored and kept',
};

/** Says what has become of a deletion that a run found: a row is held back until somebody decides. */
export const deletionState = (state: string): string => states[state] ?? state;

/** Says what the service shows of a row that a run found missing. */
export const serviceSays = (listedAsDeleted: boolean): string =>
  listedAsDeleted ? 'listed as deleted' : 'not listed any more';

/** Says what rows add up to, and whether the service itself lists them as deleted. */
export function describeSum({
  resource,
  rows,
  listedAsDeleted,
  cost,
  currency,
  state,
}: SumOfDeleted): string {
  const money = cost === null ? '' : `, ${amount(cost)} ${currency ?? 'in no currency'}`;
  const listed =
    listedAsDeleted === 0
      ? `the service does not list ${rows === 1 ? 'it' : 'them'} any more`
      : listedAsDeleted === rows
        ? `the service itself lists ${rows === 1 ? 'it' : `all ${rows.toLocaleString('en')}`} as deleted`
        : `the service itself lists ${listedAsDeleted.toLocaleString('en')} of them as deleted`;
  return `${countedRows(rows, resource)}${money}, ${deletionState(state)}: ${listed}`;
}

/**
 * Names an issue's subject as a person would; undefined if it is the company. A closed issue has only an id,
 * because names may move on.
 */
export function subjectOf({ entityType, entityId, names }: DataIssue): string | undefined {
  if (entityType === 'company') return undefined;
  const { site, provider, meter, account, invoice } = names ?? {};
  const known = [
    site,
    entityType === 'connection' ? provider : undefined,
    meter && `meter ${meter}`,
    invoice ? `invoice ${invoice}` : account && `account ${account}`,
  ].filter((name) => name);
  return known.length === 0 ? `${entityType} ${entityId}` : known.join(', ');
}
