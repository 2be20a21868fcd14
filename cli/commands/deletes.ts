import { requireSchema } from '../../app/prepare.ts';
import {
  approveDeletes,
  type InferredDeletes,
  openWarehouse,
  readDeletes,
  rejectDeletes,
  undoDeletes,
  type Warehouse,
} from '../../app/warehouse.ts';
import { openContext } from '../context.ts';
import { CommandError, UsageError } from '../errors.ts';
import { print } from '../print.ts';
import { table } from '../terminal.ts';

export type DeletesAction = 'list' | 'approve' | 'reject' | 'undo';

export interface DeletesOptions {
  readonly all?: boolean;
  readonly json?: boolean;
}

/** `metersync deletes`: rows that runs found gone from the service, and what is to become of them. */
export async function deletes(
  action: DeletesAction,
  run: string | undefined,
  options: DeletesOptions,
): Promise<void> {
  if (action !== 'list' && run === undefined)
    throw new UsageError(`name the run: metersync deletes ${action} RUN, as metersync deletes list shows it`);
  const context = await openContext({ temporal: false, service: false, quiet: true, existing: true });
  try {
    const { settings, stack, log } = context;
    await requireSchema(settings, stack.databaseUrl, log);
    const warehouse = openWarehouse(settings, stack.databaseUrl, log, 1);
    try {
      const lines =
        action === 'list'
          ? await list(warehouse, run, options)
          : [await decide(warehouse, action, run as string, options)];
      print(...lines);
    } finally {
      await warehouse.close();
    }
  } finally {
    await context.stop();
  }
}

/** What waits for a decision; of one run, and with `--all`, what was decided too. */
async function list(
  { db }: Warehouse,
  run: string | undefined,
  { all = false, json }: DeletesOptions,
): Promise<string[]> {
  const known = await readDeletes(db, { all: all || run !== undefined });
  const found = run === undefined ? known : known.filter(({ runId }) => runId === run.toLowerCase());
  if (json) return [JSON.stringify({ deletes: found })];
  if (found.length === 0 && run !== undefined) return [`Run ${run} inferred no deletion.`];
  if (found.length === 0)
    return [all ? 'No run inferred any deletion.' : 'No deletion waits for a decision.'];
  const row = (one: InferredDeletes) => [
    ...[one.runId, one.companyId ?? '', one.resource, one.state, one.reason, one.rows],
    one.examples.join(' '),
  ];
  return table(['run', 'company', 'resource', 'state', 'reason', 'rows', 'for example'], found.map(row));
}

async function decide(
  { db }: Warehouse,
  action: Exclude<DeletesAction, 'list'>,
  run: string,
  { json }: DeletesOptions,
): Promise<string> {
  const known = (await readDeletes(db, { all: true })).filter((one) => one.runId === run);
  const needed = action === 'undo' ? 'applied' : 'quarantined';
  if (!known.some(({ state }) => state === needed)) {
    const has = known.length === 0 ? 'no inferred deletions' : `none that is ${needed}`;
    throw new CommandError(`run ${run} has ${has}: metersync deletes list --all shows what there is`);
  }
  if (action === 'approve') {
    const done = await approveDeletes(db, run);
    const spared =
      done.spared === 0
        ? ''
        : `; ${done.spared} were seen or told of meanwhile and live: the next run looks again`;
    return json ? JSON.stringify(done) : `${done.tombstoned} rows tombstoned${spared}.`;
  }
  if (action === 'reject') {
    const done = await rejectDeletes(db, run);
    return json ? JSON.stringify(done) : `${done.kept} rows kept: later runs ask before they delete them.`;
  }
  const done = await undoDeletes(db, run);
  return json
    ? JSON.stringify(done)
    : `${done.revived} rows live again: later runs ask before they delete them.`;
}
