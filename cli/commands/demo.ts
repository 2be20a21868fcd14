import { join } from 'node:path';
import { startBackfill } from '../../app/backfill.ts';
import { createLog } from '../../app/process/log.ts';
import type { Running } from '../../app/process/running.ts';
import { secretsOf, startReceiver } from '../../app/receiver-part.ts';
import { migrate } from '../../app/schema.ts';
import { webhooksOf } from '../../app/service.ts';
import { readSettings } from '../../app/settings/settings.ts';
import { demoFolder, psqlCommand, quoted } from '../../app/stack.ts';
import { awaitTemporal } from '../../app/temporal/arrival.ts';
import { connectClient } from '../../app/temporal/client.ts';
import { installRuntime } from '../../app/temporal/native.ts';
import { workflowBundle } from '../../app/temporal/workflow-bundle.ts';
import { openWarehouse } from '../../app/warehouse.ts';
import { startWorker } from '../../app/worker-part.ts';
import { counted, nameInWords } from '../../contract/words.ts';
import type { Database, Warehouse } from '../../db/connection/connect.ts';
import { readDelays } from '../../db/read/arrivals.ts';
import { mostCounted } from '../../db/read/bounds.ts';
import { readWaiting } from '../../db/read/queue.ts';
import { readKindOfRuns } from '../../db/read/runs.ts';
import { countOutcomes, readStatus, type WarehouseStatus } from '../../db/read/status.ts';
import { holderOf } from '../../embedded/folder.ts';
import { eraseFolder } from '../../embedded/start.ts';
import { headline, type Verdict, verdictOf } from '../../health/verdict.ts';
import { type AuditReport, audit } from '../../operations/audit/audit.ts';
import { healthOf } from '../../operations/health.ts';
import { type SandboxControl, sandboxControl } from '../../sandbox/control/client.ts';
import { type Context, openContext } from '../context.ts';
import { CommandError, print, say } from '../output.ts';
import { interruptedStatus, signalsCounted, untilAsked } from '../signals.ts';
import { createProgress, milliseconds, type Progress, table } from '../terminal.ts';
import { describeAudit } from './audit.ts';
import { followBackfill } from './backfill.ts';
import type { ServedConsole } from './console.ts';

interface DemoOptions {
  readonly companies: number;
  readonly documents: number;
  readonly intervalDays: number;
  readonly events: number;
  readonly keep: boolean;
  readonly temporalUi: boolean;
}

const settleWithinMs = 120_000;
/** Connections of the warehouse, and so the number of listings that the audit reads at once. */
const connections = 8;

/** `metersync demo`: runs everything from the service to rows on real parts, and proves it by an audit. */
export async function demo(options: DemoOptions): Promise<void> {
  const unused = ['SERVICE_URL', 'DATABASE_URL', 'TEMPORAL_ADDRESS'].filter((name) => process.env[name]);
  if (unused.length > 0)
    say(`the demo starts its own service, Postgres and Temporal, and ignores ${unused.join(', ')}`);
  const dataDir = join(readSettings({ METERSYNC_DIR: process.env.METERSYNC_DIR }).dataDir, demoFolder);
  const began = performance.now();
  const progress = await createProgress();
  progress.show(['starting Postgres, Temporal and the service…']);
  // Made while the servers start. The worker awaits it, so a failure appears there.
  const bundle = workflowBundle(createLog({ level: 'silent' }));
  bundle.catch(() => {});
  const context = await openDemo(dataDir, options, progress);
  const running: Running[] = [];
  const stop = async () => {
    await Promise.all(running.map((part) => part.stop()));
    await context.stop();
  };
  const count = signalsCounted();
  const interrupted = () => {
    const counted = count();
    if (counted === 'again') process.exit(interruptedStatus);
    if (counted !== 'first') return;
    progress.done();
    stop().finally(() => process.exit(interruptedStatus));
  };
  process.on('SIGINT', interrupted);
  const warehouse = openWarehouse(context.settings, context.stack.databaseUrl, context.log, connections);
  try {
    const failed = Promise.withResolvers<never>();
    const begun = (part: Running): void => {
      running.push(part);
      part.finished.catch(failed.reject);
    };
    context.finished.catch(failed.reject);
    const played = play(context, warehouse, options, { bundle, progress, begun });
    const result = await Promise.race([played, failed.promise]);
    print(...describe(result, (performance.now() - began) / 1000));
    if (result.report.differences > 0) process.exitCode = 1;
    const console = options.keep ? await openConsole(context) : undefined;
    if (console !== undefined) running.push(console);
    print('', ...(await describeNext(context, dataDir, console?.link)));
    if (options.keep)
      await keepRunning([context.finished, ...running.map(({ finished }) => finished)], interrupted);
  } finally {
    process.off('SIGINT', interrupted);
    await warehouse.close();
    await stop();
  }
}

/** Describes what to try with the demo's data; with the link of a console, also what keeps running. */
async function describeNext(
  context: Context,
  dataDir: string,
  console: string | undefined,
): Promise<string[]> {
  const { service, sandbox, stack } = context;
  const psql = psqlCommand(stack.databaseUrl, dataDir);
  const query = 'select provider, currency, sum(cost) as cost from bills group by 1, 2 order by 1, 2';
  const call = howCalled();
  return [
    'The data stays until the next demo. Try:',
    `  export METERSYNC_DIR=${quoted(dataDir)}`,
    `  ${call} report --html report.html`,
    ...(console !== undefined
      ? [
          `  ${call} status`,
          `  ${psql} -c '${query}'`,
          psql,
          `Console: ${console}`,
          ...(stack.temporalUi === undefined ? [] : [`Temporal: ${stack.temporalUi}`]),
          `Service: ${service.url}, API key ${service.apiKey}`,
          ...(sandbox === undefined ? [] : [`Portal: ${await webhooksOf(service).portal()}`]),
          'Ctrl-C ends it.',
        ]
      : [
          `  ${call} export bills --out bills.csv`,
          `  ${call} checks list`,
          `To use psql, the console and the portal, keep the demo running: ${call} demo --keep`,
          "--temporal-ui also serves Temporal's web page.",
        ]),
  ];
}

async function openDemo(dataDir: string, options: DemoOptions, progress: Progress): Promise<Context> {
  // Every demo begins without data. But data of the last demo that a process still uses is not erased.
  const runner = holderOf(dataDir)?.pid;
  if (runner !== undefined)
    throw new CommandError(`process ${runner} is using the data of the last demo (${dataDir}): end it first`);
  await eraseFolder(dataDir);
  return await openContext({
    temporal: true,
    temporalUi: options.temporalUi,
    service: true,
    quiet: true,
    standalone: true,
    dataDir,
    sandbox: options,
    meanwhile: async ({ settings, stack, log }) => {
      installRuntime(log);
      await migrate(settings, stack.databaseUrl, log);
    },
    onLine: (line) => progress.show([line]),
  });
}

async function openConsole(context: Context): Promise<ServedConsole> {
  const { startConsole } = await import('./console.ts');
  return await startConsole(context, { host: '127.0.0.1', port: 0 });
}

interface Played {
  readonly backfillSeconds: number;
  readonly events: number;
  readonly status: WarehouseStatus;
  readonly delays: Awaited<ReturnType<typeof readDelays>>;
  readonly report: AuditReport;
  readonly deliveries: Record<string, number>;
  readonly verdict: Verdict;
}

interface Playing {
  readonly bundle: ReturnType<typeof workflowBundle>;
  readonly progress: Progress;
  readonly begun: (part: Running) => void;
}

async function play(
  context: Context,
  warehouse: Warehouse,
  options: DemoOptions,
  { bundle, progress, begun }: Playing,
): Promise<Played> {
  const { settings, stack, service, sandbox, log } = context;
  if (sandbox === undefined) throw new CommandError('the demo needs the sandbox');
  const control = sandboxControl(sandbox);
  const { temporal, databaseUrl } = stack;
  progress.show(['starting the receiver and the workers…']);
  const readHealth = healthOf({ settings, databaseUrl, temporal });
  const worker = await startWorker(
    { settings, service, databaseUrl, temporal, readHealth, log },
    { workflowBundle: await bundle },
  );
  begun(worker);
  const temporalWait = await awaitTemporal(temporal, log);
  await webhooksOf(service).enable(true);
  const endpoint = await control.endpoint();
  const receiver = await startReceiver({
    settings: { ...settings, receiver: { host: '127.0.0.1', port: 0 } },
    secrets: secretsOf({ ...settings.webhooks, secrets: [endpoint.secret] }, log),
    temporal,
    temporalWait,
    startHere: () => worker.startHere,
    log,
  });
  begun(receiver);
  await endpoint.moveTo(receiver.url);

  const backfillBegan = performance.now();
  const { client, close } = await connectClient(temporal);
  try {
    const runId = await startBackfill(client);
    const { state, run } = await followBackfill({ client, db: warehouse.db, runId, progress });
    if (state !== 'complete')
      throw new CommandError(`the backfill ended ${state}: ${run.error ?? 'see the log'}`);
  } finally {
    await close();
  }
  const backfillSeconds = (performance.now() - backfillBegan) / 1000;

  await control.disturb({ duplicate: 0.1, shuffle: true, delayMs: [0, 400] });
  const fired = await control.randomChanges(options.events, 1);
  await untilSettled(warehouse.db, control, progress, fired.events);
  const { deliveries } = await control.status();

  const access = await context.access();
  try {
    const report = await audit({
      warehouse,
      service: access.client,
      concurrency: connections,
      onProgress: ({ companies, compared }) =>
        progress.show([
          `audit: ${counted(companies, 'company', 'companies')}, ${counted(compared, 'record')} compared`,
        ]),
    });
    progress.done();
    const [status, delays] = [await readStatus(warehouse.db), await readDelays(warehouse.db)];
    const verdict = verdictOf(await readHealth(warehouse.db));
    return { backfillSeconds, events: fired.events, status, delays, report, deliveries, verdict };
  } finally {
    await access.client.close();
  }
}

async function untilSettled(
  db: Database,
  control: SandboxControl,
  progress: Progress,
  expected: number,
): Promise<void> {
  const deadline = performance.now() + settleWithinMs;
  for (;;) {
    const [service, events] = [await control.status(), await countOutcomes(db)];
    const { pending } = events;
    const seen = Object.values(events).reduce((sum, count) => sum + count, 0);
    progress.show([
      `live: ${seen.toLocaleString('en')} of ${expected.toLocaleString('en')} events received, ${pending} waiting to be read again`,
    ]);
    // An acknowledged event may still be on its way through Temporal, and in no table yet.
    const arrived = service.quiet && seen >= expected;
    if (arrived && pending === 0 && (await readKindOfRuns(db, 'full', 0)).running === 0) return;
    if (performance.now() > deadline) {
      throw new CommandError(
        `not settled after ${settleWithinMs / 1000} s: ${pending} events pending. ${JSON.stringify(await readWaiting(db, mostCounted))}`,
      );
    }
    // Counting takes processor time from the live phase, so it is done less often meanwhile.
    await new Promise((done) => setTimeout(done, service.quiet ? 100 : 500));
  }
}

function describe(played: Played, seconds: number): string[] {
  const { report, status, delays, deliveries } = played;
  const shown = (seconds: number | undefined) => milliseconds(seconds === undefined ? null : 1_000 * seconds);
  const rows = Object.entries(status.rows).map(([name, count]) => [nameInWords(name), count]);
  const outcomes = Object.entries(status.events).filter(([, count]) => count > 0);
  return [
    ...table(['rows', 'live'], rows),
    ...table(['events', 'count'], [...outcomes, ['delivered twice', deliveries.duplicates ?? 0]]),
    ...table(
      ['from event', 'p50', 'p99'],
      [
        ['to row', shown(delays.row?.p50), shown(delays.row?.p99)],
        ['to record read again', shown(delays.record?.p50), shown(delays.record?.p99)],
      ],
    ),
    ...describeAudit(report),
    headline(played.verdict),
    `backfill ${played.backfillSeconds.toFixed(1)} s, all ${seconds.toFixed(1)} s`,
  ];
}

async function keepRunning(parts: readonly Promise<void>[], interrupted: () => void): Promise<void> {
  process.off('SIGINT', interrupted);
  await untilAsked(process, {
    begin: async () => parts,
    onAsked: () => print('stopping…'),
    drain: async () => {},
  });
}

/** How the user called the command: through npx, in a checkout through npm, or by its name. */
function howCalled({ npm_lifecycle_event: script }: NodeJS.ProcessEnv = process.env): string {
  if (script === undefined) return 'metersync';
  return script === 'npx' ? 'npx metersync' : 'npm run -s metersync --';
}
