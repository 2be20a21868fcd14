import { sql } from 'drizzle-orm';
import { startBackfill, workerIsPolling } from '../../app/backfill.ts';
import { requireSchema } from '../../app/prepare.ts';
import { connectClient } from '../../app/temporal.ts';
import { type Database, openWarehouse } from '../../app/warehouse.ts';
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
    const runId = await startBackfill(client, await companiesOf(warehouse.db, options));
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

async function companiesOf(db: Database, options: BackfillOptions): Promise<string[] | undefined> {
  if (options.company !== undefined) return [options.company];
  if (options.externalId === undefined) return undefined;
  const found = await db.execute<{ id: string }>(
    sql`select id from utility.companies where external_id = ${options.externalId} and deleted_at is null`,
  );
  if (found.rows.length === 0) {
    throw new CommandError(
      `no company with external id ${options.externalId} is known yet: give its id with --company, or backfill all first`,
    );
  }
  return found.rows.map((row) => row.id);
}
