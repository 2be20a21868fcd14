import type { Client } from '@temporalio/client';
import { runIsStarted, startBackfill } from '../../app/backfill.ts';
import { connectClient } from '../../app/temporal/temporal.ts';
import { requireAnswer, requireSchema } from '../../app/warehouse/prepare.ts';
import { openWarehouse } from '../../app/warehouse/warehouse.ts';
import type { Database } from '../../db/connection/connect.ts';
import { readRunProgress } from '../../db/read/run-progress.ts';
import { whyRefused } from '../../operations/named-company.ts';
import { recorded } from '../../operations/recorded.ts';
import { requireWorker } from '../../operations/require-worker.ts';
import { asOperation } from '../as-operation.ts';
import { companyOf } from '../company.ts';
import { readCompanyIds } from '../company-ids.ts';
import { type Context, openContext } from '../context.ts';
import { describePart } from '../describe-run.ts';
import { CommandError, UsageError } from '../errors.ts';
import { followBackfill } from '../follow-backfill.ts';
import { interruptedStatus, untilInterrupted } from '../interruption.ts';
import { print, say } from '../print.ts';
import { createProgress } from '../terminal.ts';

export interface BackfillOptions {
  /** Run id of an existing run to follow. */
  run?: string;
  company?: string;
  externalId?: string;
  /** A file of company ids, `-` for standard input. */
  companiesFile?: string;
  follow?: boolean;
}

/**
 * `metersync backfill`: starts a backfill of one company, several or all, and waits for its end with
 * `--follow`. With `--run` it follows an existing run instead.
 */
export async function backfill(scope: string | undefined, options: BackfillOptions): Promise<void> {
  const { company, companiesFile } = options;
  requireOne(scope, options);
  const ids = companiesFile === undefined ? undefined : await readCompanyIds(companiesFile);
  const context = await openContext({
    temporal: true,
    quiet: true,
    existing: true,
    service: company === undefined ? false : 'if known',
  });
  try {
    await run(context, options, ids);
  } finally {
    await context.stop();
  }
}

/** @throws UsageError unless exactly one thing is said of what to read, or which run to follow */
function requireOne(
  scope: string | undefined,
  { company, externalId, companiesFile, run: started }: BackfillOptions,
): void {
  if (scope !== undefined && scope !== 'all')
    throw new UsageError(
      `unknown scope ${scope}: write all, or name companies with --company, --external-id or --companies-file`,
    );
  const given = Object.entries({
    all: scope,
    '--company': company,
    '--external-id': externalId,
    '--companies-file': companiesFile,
    '--run': started,
  }).flatMap(([name, value]) => (value === undefined ? [] : [name]));
  if (given.length === 0)
    throw new UsageError(
      'choose what to backfill (all, --company ID, --external-id X or --companies-file FILE), or which run to follow (--run ID)',
    );
  if (given.length > 1) throw new UsageError(`use only one of these at a time: ${given.join(', ')}`);
}

async function run(
  context: Context,
  options: BackfillOptions,
  ids: readonly string[] | undefined,
): Promise<void> {
  const { settings, stack, log } = context;
  await requireAnswer(settings, stack.databaseUrl, log);
  await requireSchema(settings, stack.databaseUrl, log);
  const warehouse = openWarehouse(settings, stack.databaseUrl, log, 2);
  const { client, close } = await connectClient(stack.temporal);
  try {
    if (options.run !== undefined) {
      await follow(client, warehouse.db, await knownRun(client, warehouse.db, options.run));
      return;
    }
    const company = await companyOf(warehouse.db, options);
    if (options.company !== undefined) await refuseIfUnknown(context, warehouse.db, options.company);
    const companies = ids ?? (company === undefined ? undefined : [company]);
    const runId = await recorded(
      warehouse.db,
      asOperation(settings, 'backfill', {
        company,
        companies: ids === undefined ? undefined : String(ids.length),
      }),
      async () => {
        await requireWorker(client, 'backfill');
        return await startBackfill(client, companies && { db: warehouse.db, companies });
      },
      (started) => `backfill ${started} started`,
    );
    print(`backfill ${runId} started${ids === undefined ? '' : `: ${ids.length} companies`}`);
    if (options.follow) await follow(client, warehouse.db, runId);
    else say(`To follow it: metersync backfill --run ${runId}`);
  } finally {
    await close();
    await warehouse.close();
  }
}

/**
 * Asks the service for a typed company id before anything of it is written. Where this command does not know
 * the service, the worker asks instead.
 */
async function refuseIfUnknown(context: Context, db: Database, companyId: string): Promise<void> {
  if (context.service.url === '') return;
  const { client } = await context.access();
  try {
    const reason = await whyRefused(db, client, companyId);
    if (reason !== undefined) throw new UsageError(reason);
  } finally {
    await client.close();
  }
}

/** Shows a run's progress until it is over, or until Ctrl-C, which leaves it running. */
async function follow(client: Client, db: Database, runId: string): Promise<void> {
  const { signal, forget } = untilInterrupted(process);
  try {
    const progress = await createProgress();
    const { state, run } = await followBackfill({ client, db, runId, progress, signal });
    print(
      `backfill ${runId}: ${state}${run.error === null ? '' : `: ${run.error}`}`,
      ...run.failed.map(describePart),
    );
    if (state !== 'complete') process.exitCode = 1;
  } catch (error) {
    if (!signal.aborted) throw error;
    print(`The backfill continues. To follow it again: metersync backfill --run ${runId}`);
    process.exitCode = interruptedStatus;
  } finally {
    forget();
  }
}

async function knownRun(client: Client, db: Database, runId: string): Promise<string> {
  const { state } = await readRunProgress(db, runId);
  if (state !== null || (await runIsStarted(client, runId))) return runId;
  throw new CommandError(`there is no run ${runId}: metersync status names the last run`);
}
