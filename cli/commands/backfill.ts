import { setTimeout as wait } from 'node:timers/promises';
import type { Client } from '@temporalio/client';
import { runEnd, startBackfill, startReconcile, workflowOfRun } from '../../app/backfill.ts';
import { withClient } from '../../app/temporal/client.ts';
import { companyResources } from '../../contract/endpoints.ts';
import type { FailureCode } from '../../contract/failures.ts';
import type { RunState } from '../../contract/names.ts';
import { formatSeconds } from '../../contract/times.ts';
import { counted, nameInWords, wordOfRun } from '../../contract/words.ts';
import type { Database } from '../../db/connection/connect.ts';
import {
  type CompanyProgress,
  type FailedPart,
  type RunProgress,
  readRunProgress,
} from '../../db/read/runs.ts';
import { recorded } from '../../operations/recorded.ts';
import { describeResumed, requireWorker, resumeParked, whyNotRead } from '../../operations/runs.ts';
import { asOperation } from '../command-line.ts';
import type { Context } from '../context.ts';
import { answer, CommandError, print, say, UsageError } from '../output.ts';
import { interruptedStatus } from '../signals.ts';
import { createProgress, type Progress } from '../terminal.ts';
import { chosenCompany, withWarehouse } from '../warehouse.ts';

interface BackfillOptions {
  readonly run?: string;
  readonly company?: string;
  readonly externalId?: string;
  readonly follow?: boolean;
}

/** What a command needs to start or follow a run. */
interface Opened {
  readonly context: Context;
  readonly client: Client;
  readonly db: Database;
}

/** `metersync backfill`: starts a backfill, or follows one with `--run`; `--follow` waits for its end. */
export async function backfill(scope: string | undefined, options: BackfillOptions): Promise<void> {
  requireOne(scope, options);
  const { run, follow: follows = false } = options;
  await withRuns({ service: options.company === undefined ? false : 'if known' }, async (opened) => {
    const { client, db } = opened;
    if (run !== undefined) return await follow(opened, await knownRun(opened, run));
    const company = await chosenCompany(db, options);
    if (options.company !== undefined) await refuseIfUnknown(opened, options.company);
    const chosen = company === undefined ? undefined : { db, companies: [company] };
    await start(opened, 'backfill', { company }, () => startBackfill(client, chosen), follows);
  });
}

/** `metersync reconcile`: starts a reconcile now; `--follow` waits for its end. */
export async function reconcile(options: { follow?: boolean }): Promise<void> {
  await withRuns({ service: false }, (opened) =>
    start(opened, 'reconcile', {}, () => startReconcile(opened.client), options.follow ?? false),
  );
}

/** `metersync resume`: tries parked work again at once, because its cause is gone. */
export async function resume(options: { code?: FailureCode; json?: boolean }): Promise<void> {
  const { code } = options;
  await withRuns({ service: false }, async ({ context, client, db }) => {
    const report = await recorded(
      db,
      asOperation(context.settings, 'resume', { code }),
      () => resumeParked({ client, db, code }),
      (resumed) => describeResumed(resumed).join('; '),
    );
    answer(options, report, describeResumed);
  });
}

const withRuns = (need: { service: false | 'if known' }, work: (opened: Opened) => Promise<void>) =>
  withWarehouse({ temporal: true, ...need }, ({ db, context }) =>
    withClient(context.stack.temporal, (client) => work({ context, client, db })),
  );

/** @throws UsageError unless the options name exactly one thing: what to read, or which run to follow */
function requireOne(scope: string | undefined, { company, externalId, run }: BackfillOptions): void {
  if (scope !== undefined && scope !== 'all')
    throw new UsageError(
      `unknown scope ${scope}: write all, or name a company with --company or --external-id`,
    );
  const named = { all: scope, '--company': company, '--external-id': externalId, '--run': run };
  const given = Object.entries(named).flatMap(([name, value]) => (value === undefined ? [] : [name]));
  if (given.length === 0)
    throw new UsageError(
      'choose what to backfill (all, --company ID or --external-id X), or which run to follow (--run ID)',
    );
  if (given.length > 1) throw new UsageError(`use only one of these at a time: ${given.join(', ')}`);
}

/** Asks the service whether it has the company, before it is written. If this cannot ask, the worker does. */
async function refuseIfUnknown({ context, db }: Opened, companyId: string): Promise<void> {
  if (context.service.url === '') return;
  const { client } = await context.access();
  try {
    const reason = await whyNotRead(db, client, companyId);
    if (reason !== undefined) throw new UsageError(reason);
  } finally {
    await client.close();
  }
}

async function knownRun({ client, db }: Opened, runId: string): Promise<string> {
  const { state } = await readRunProgress(db, runId);
  if (state !== null || (await workflowOfRun(client, runId)) !== undefined) return runId;
  throw new CommandError(`there is no run ${runId}: metersync status names the last run`);
}

/** Starts a run, which the log of operations notes, and follows it or says how to. */
async function start(
  opened: Opened,
  action: 'backfill' | 'reconcile',
  target: Readonly<Record<string, string | undefined>>,
  begin: () => Promise<string>,
  follows: boolean,
): Promise<void> {
  const { client, context, db } = opened;
  const runId = await recorded(
    db,
    asOperation(context.settings, action, target),
    async () => {
      await requireWorker(client, 'backfill');
      return await begin();
    },
    (started) => `${action} ${started} started`,
  );
  print(`${action} ${runId} started`);
  if (follows) await follow(opened, runId);
  else say(`To follow it: metersync backfill --run ${runId}`);
}

/** Shows a run's progress until it is over, or until Ctrl-C, which leaves it running. */
async function follow({ client, db }: Opened, runId: string): Promise<void> {
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

const lookEveryMs = 300;

/** Shows a run's progress until it is over; returns how it ended. */
export async function followBackfill({
  client,
  db,
  runId,
  progress,
}: {
  readonly client: Client;
  readonly db: Database;
  readonly runId: string;
  readonly progress: Progress;
}): Promise<{ state: RunState; run: RunProgress }> {
  const { workflowId } = await readRunProgress(db, runId);
  const workflow = workflowId ?? (await workflowOfRun(client, runId));
  let ended: RunState | undefined;
  if (workflow !== undefined)
    void runEnd(client, workflow).then((state) => {
      ended = state;
    });
  try {
    for (;;) {
      // Taken before the progress is read, so that the last progress shows the end.
      const state = ended;
      const run = await readRunProgress(db, runId);
      progress.show(describeRun(run));
      if (state !== undefined) return { state, run };
      if (run.state !== null && run.state !== 'running') return { state: run.state, run };
      await wait(lookEveryMs);
    }
  } finally {
    progress.done();
  }
}

/** Maximum number of companies in progress that are listed; only several workers read more at once. */
const runningMax = 10;
const failedMax = 5;
const nameWidth = 28;

/** Describes the progress and speed of a run, and then what is being read of each company. */
export function describeRun(run: RunProgress): string[] {
  if (run.state === null) return ['no worker has started the run yet'];
  const word = wordOfRun[run.kind ?? 'full'];
  const head = [
    run.companiesDone === null
      ? `${word}: ${run.state}, its parts are no longer kept (RETENTION_DAYS)`
      : `${word}: ${amount(run.companiesDone)} of ${counted(run.companies, 'company', 'companies')}`,
    `${amount(run.rows)} rows`,
    `${amount(run.rows / Math.max(run.seconds, 0.1))} rows/s`,
    ...(run.state === 'running' ? left(run) : [`${formatSeconds(Math.ceil(run.seconds))} in all`]),
  ];
  const more = run.running.length - runningMax;
  return [
    head.join(', '),
    ...run.running.slice(0, runningMax).map(describeCompany),
    ...(more > 0 ? [`  … and ${more} more`] : []),
    ...(run.state === 'running' ? run.failed.slice(0, failedMax).map(describePart) : []),
  ];
}

const describePart = ({ name, resource, state, error }: FailedPart): string =>
  `  ${state}: ${cut(name ?? 'service')} ${nameInWords(resource)}: ${error ?? ''}`;

function describeCompany(company: CompanyProgress): string {
  const { name, resource, step } = company;
  const place = `(${step} of ${companyResources.length})`;
  return `  ${cut(name).padEnd(nameWidth)}  ${nameInWords(resource).padEnd(11)} ${place}, ${amountRead(company)}`;
}

function amountRead({ done, of, unit }: CompanyProgress): string {
  if (unit === 'meters' && of !== null && of > 0)
    return `reading meter ${amount(Math.min(Math.floor(done) + 1, of))} of ${amount(of)}`;
  return `${amount(Math.floor(done))}${of === null ? '' : ` of ${amount(of)}`} ${unit}`;
}

/**
 * Estimates the remaining time by the companies that are done, while further companies wait. How long the
 * companies in progress take is unknown: a single meter may have more readings than all others.
 */
function left({ companies, companiesDone, running, seconds }: RunProgress): string[] {
  const done = companiesDone ?? 0;
  if (done === 0 || companies <= done + running.length) return [];
  return [`about ${formatSeconds(Math.ceil((seconds * (companies - done)) / done))} left`];
}

const amount = (n: number): string => Math.round(n).toLocaleString('en');
const cut = (name: string): string => (name.length > nameWidth ? `${name.slice(0, nameWidth - 1)}…` : name);
