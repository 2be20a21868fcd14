import { counted, nameInWords } from '../../contract/words.ts';
import type { Database } from '../../db/connect.ts';
import {
  approveDeletes,
  type InferredDeletes,
  readDeletes,
  rejectDeletes,
  undoDeletes,
} from '../../db/deletes/decide.ts';
import { CommandError } from '../errors.ts';
import { asJson, print } from '../print.ts';
import { tableOf } from '../terminal.ts';
import { withWarehouse } from '../warehouse.ts';

/** A decision on rows that a run found gone. */
export type Decision = 'approve' | 'reject' | 'undo';

export interface DeletesOptions {
  readonly all?: boolean;
  readonly json?: boolean;
}

/** `metersync deletes list`: lists the rows that runs found gone from the service. */
export async function deletesList(run: string | undefined, options: DeletesOptions): Promise<void> {
  await withWarehouse({ temporal: false }, async ({ db }) => print(...(await list(db, run, options))));
}

/** `metersync deletes approve`, `reject` and `undo`: decides on such rows. */
export async function deletesDecide(
  decision: Decision,
  run: string,
  options: { json?: boolean },
): Promise<void> {
  await withWarehouse({ temporal: false }, async ({ db }) => print(await decide(db, decision, run, options)));
}

/** Lists deletions that wait for a decision; decided ones too of one run or with `--all`. */
async function list(
  db: Database,
  run: string | undefined,
  { all = false, json }: DeletesOptions,
): Promise<string[]> {
  const deletes = await readDeletes(db, { all: all || run !== undefined });
  const found = run === undefined ? deletes : deletes.filter(({ runId }) => runId === run.toLowerCase());
  if (json) return [asJson({ deletes: found })];
  if (found.length === 0 && run !== undefined) return [`Run ${run} inferred no deletion.`];
  if (found.length === 0)
    return [all ? 'No run inferred any deletion.' : 'No deletion waits for a decision.'];
  const wide = ({ runId, companyId, resource, state, reason, rows, examples }: InferredDeletes) => [
    runId,
    companyId ?? '',
    nameInWords(resource),
    state,
    reason,
    rows,
    examples.join(' '),
  ];
  const narrow = ({ runId, companyId, resource, state, reason, rows, examples }: InferredDeletes) => [
    [`run ${runId}`, ...(companyId === null ? [] : [`company ${companyId}`]), ...examples],
    [nameInWords(resource), state, reason],
    rows,
  ];
  return tableOf([
    {
      head: ['run', 'company', 'resource', 'state', 'reason', 'rows', 'for example'],
      rows: found.map(wide),
    },
    { head: ['of', 'what', 'rows'], rows: found.map(narrow) },
  ]);
}

async function decide(
  db: Database,
  action: Decision,
  run: string,
  { json }: DeletesOptions,
): Promise<string> {
  const ofRun = (await readDeletes(db, { all: true })).filter(({ runId }) => runId === run);
  const needed = action === 'undo' ? 'applied' : 'quarantined';
  if (!ofRun.some(({ state }) => state === needed)) {
    const has = ofRun.length === 0 ? 'no inferred deletions' : `none that is ${needed}`;
    throw new CommandError(`run ${run} has ${has}: metersync deletes list --all shows what there is`);
  }
  if (action === 'approve') {
    const done = await approveDeletes(db, run);
    const skipped =
      done.spared === 0
        ? ''
        : `; ${counted(done.spared, 'row')} seen or told of meanwhile stay: the next run looks again`;
    return json ? asJson(done) : `${counted(done.tombstoned, 'row')} tombstoned${skipped}.`;
  }
  if (action === 'reject') {
    const done = await rejectDeletes(db, run);
    return json ? asJson(done) : `${counted(done.kept, 'row')} kept: later runs ask before they delete them.`;
  }
  const done = await undoDeletes(db, run);
  return json
    ? asJson(done)
    : `${counted(done.revived, 'row')} live again: later runs ask before they delete them.`;
}
