import { counted } from '../contract/words.ts';
import type { Database } from '../db/connection/connect.ts';
import { approveDeletes, readDeletes, rejectDeletes, undoDeletes } from '../db/deletes/decide.ts';
import { Refused } from './recorded.ts';

/** A decision on rows that a run found gone. */
export type Decision = 'approve' | 'reject' | 'undo';

export type Decided =
  | { readonly tombstoned: number; readonly spared: number }
  | { readonly kept: number }
  | { readonly revived: number; readonly waiting: number };

/** Decides on the rows that a run found missing. Throws Refused if there is nothing to decide. */
export async function decideDeletes(db: Database, decision: Decision, run: string): Promise<Decided> {
  const ofRun = await readDeletes(db, { all: true, run });
  if (!ofRun.some(({ state }) => canDecide(decision, state))) {
    const has =
      ofRun.length === 0
        ? 'no deletions'
        : `no deletions that ${decision === 'undo' ? 'were decided' : 'wait for a decision'}`;
    throw new Refused(`run ${run} has ${has}: metersync deletes list --all lists all deletions`);
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
