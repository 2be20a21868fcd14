import type { Client } from '@temporalio/client';
import { startBackfill, workflowOfRun } from '../../app/backfill.ts';
import { withClient } from '../../app/temporal/temporal.ts';
import { wordOfRun } from '../../contract/words.ts';
import type { Database } from '../../db/connection/connect.ts';
import { readRunProgress } from '../../db/read/run-progress.ts';
import { whyRefused } from '../../operations/named-company.ts';
import { recorded } from '../../operations/recorded.ts';
import { requireWorker } from '../../operations/require-worker.ts';
import { asOperation } from '../as-operation.ts';
import { companyOf } from '../company.ts';
import type { Context } from '../context.ts';
import { describePart } from '../describe-run.ts';
import { CommandError, UsageError } from '../errors.ts';
import { followBackfill } from '../follow-backfill.ts';
import { print, say } from '../print.ts';
import { interruptedStatus } from '../repeated-signal.ts';
import { createProgress } from '../terminal.ts';
import { withWarehouse } from '../warehouse.ts';

export interface BackfillOptions {
  run?: string;
  company?: string;
  externalId?: string;
  follow?: boolean;
}

/** `metersync backfill`: starts a backfill, or follows one with `--run`; `--follow` waits for its end. */
export async function backfill(scope: string | undefined, options: BackfillOptions): Promise<void> {
  requireOne(scope, options);
  const service = options.company === undefined ? false : 'if known';
  await withWarehouse({ temporal: true, service }, async ({ db, context }) =>
    withClient(context.stack.temporal, (client) => run(context, client, db, options)),
  );
}

/** @throws UsageError unless the options name exactly one thing: what to read, or which run to follow */
function requireOne(scope: string | undefined, { company, externalId, run: started }: BackfillOptions): void {
  if (scope !== undefined && scope !== 'all')
    throw new UsageError(
      `unknown scope ${scope}: write all, or name a company with --company or --external-id`,
    );
  const given = Object.entries({
    all: scope,
    '--company': company,
    '--external-id': externalId,
    '--run': started,
  }).flatMap(([name, value]) => (value === undefined ? [] : [name]));
  if (given.length === 0)
    throw new UsageError(
      'choose what to backfill (all, --company ID or --external-id X), or which run to follow (--run ID)',
    );
  if (given.length > 1) throw new UsageError(`use only one of these at a time: ${given.join(', ')}`);
}

async function run(context: Context, client: Client, db: Database, options: BackfillOptions): Promise<void> {
  if (options.run !== undefined) return await follow(client, db, await knownRun(client, db, options.run));
  const company = await companyOf(db, options);
  if (options.company !== undefined) await refuseIfUnknown(context, db, options.company);
  const runId = await recorded(
    db,
    asOperation(context.settings, 'backfill', { company }),
    async () => {
      await requireWorker(client, 'backfill');
      return await startBackfill(client, company === undefined ? undefined : { db, companies: [company] });
    },
    (started) => `backfill ${started} started`,
  );
  print(`backfill ${runId} started`);
  if (options.follow) await follow(client, db, runId);
  else say(`To follow it: metersync backfill --run ${runId}`);
}

/** Asks the service whether it has the company, before it is written. If this cannot ask, the worker does. */
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
export async function follow(client: Client, db: Database, runId: string): Promise<void> {
  const progress = await createProgress();
  const interrupted = () => {
    progress.done();
    print(`The run continues. To follow it again: metersync backfill --run ${runId}`);
    process.exit(interruptedStatus);
  };
  process.on('SIGINT', interrupted);
  try {
    const { state, run } = await followBackfill({ client, db, runId, progress });
    print(
      `${wordOfRun[run.kind ?? 'full']} ${runId}: ${state}${run.error === null ? '' : `: ${run.error}`}`,
      ...run.failed.map(describePart),
    );
    if (state !== 'complete') process.exitCode = 1;
  } finally {
    process.off('SIGINT', interrupted);
  }
}

async function knownRun(client: Client, db: Database, runId: string): Promise<string> {
  const { state } = await readRunProgress(db, runId);
  if (state !== null || (await workflowOfRun(client, runId)) !== undefined) return runId;
  throw new CommandError(`there is no run ${runId}: metersync status names the last run`);
}
