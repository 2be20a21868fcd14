import { startBackfill, workerIsPolling } from '../../app/backfill.ts';
import { requireSchema } from '../../app/prepare.ts';
import { connectClient } from '../../app/temporal.ts';
import { openWarehouse } from '../../app/warehouse.ts';
import { companyOf } from '../company.ts';
import { CommandError, type Context, openContext, UsageError } from '../context.ts';
import { followBackfill } from '../follow-backfill.ts';
import { createProgress } from '../terminal.ts';

export interface BackfillOptions {
  company?: string;
  externalId?: string;
  follow?: boolean;
}

/** `metersync backfill`: starts reading one company or all; with `--follow` waits for the end. */
export async function backfill(scope: string | undefined, options: BackfillOptions): Promise<void> {
  const chosen = [scope, options.company, options.externalId].filter((choice) => choice !== undefined);
  if (chosen.length !== 1 || (scope !== undefined && scope !== 'all')) {
    throw new UsageError('say what to backfill: all, --company ID or --external-id X');
  }
  const context = await openContext({ temporal: true, service: false, quiet: true });
  try {
    await run(context, options);
  } finally {
    await context.stop();
  }
}

async function run(context: Context, options: BackfillOptions): Promise<void> {
  const { settings, stack, log } = context;
  await requireSchema(settings, stack.databaseUrl, log);
  const warehouse = openWarehouse(settings, stack.databaseUrl, log, 2);
  const { client, close } = await connectClient(stack.temporal);
  try {
    if (!(await workerIsPolling(client))) {
      throw new CommandError(
        'no worker is running to do the work: run metersync start (or metersync worker) first',
      );
    }
    const company = await companyOf(warehouse.db, options);
    const runId = await startBackfill(client, company === undefined ? undefined : [company]);
    console.log(`backfill ${runId} started`);
    if (!options.follow) return;
    const detached = new AbortController();
    process.once('SIGINT', () => detached.abort());
    try {
      const progress = createProgress();
      const { state, run: ended } = await followBackfill({
        ...{ client, db: warehouse.db, runId, progress },
        signal: detached.signal,
      });
      console.log(`backfill ${runId}: ${state}${ended.error === null ? '' : `: ${ended.error}`}`);
      if (state !== 'complete') process.exitCode = 1;
    } catch (error) {
      if (!detached.signal.aborted) throw error;
      console.log(
        `The backfill goes on. Look again with: select * from metersync.runs where run_id = '${runId}'`,
      );
    }
  } finally {
    await close();
    await warehouse.close();
  }
}
