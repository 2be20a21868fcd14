import { Client, Connection, type ConnectionOptions, ScheduleOverlapPolicy } from '@temporalio/client';
import { startBackfill } from '../../app/backfill.ts';
import { type RunState, scheduleIds, taskQueues, workflowIds, workflowNames } from '../../contract/names.ts';
import { connectWarehouse, type Warehouse } from '../../db/connection/connect.ts';
import { prepareFolder } from '../../embedded/folder.ts';
import { choosePorts, type Ports } from '../../embedded/start.ts';
import { findTemporal, temporalAnswers, temporalServer } from '../../embedded/temporal.ts';
import { runCommand } from '../support/command.ts';
import { runProcess, startCommand } from '../support/command-process.ts';
import { temporaryFolder } from '../support/folder.ts';
import { until } from '../support/poll.ts';
import { freePort } from '../support/port.ts';
import { type SandboxSize, startSandbox, type TestSandbox } from '../support/sandbox.ts';
import { watchEffects } from './ledger.ts';
import { epochVariable } from './pace.ts';
import { createPart, type Life, type Part } from './part.ts';
import type { PartName } from './plan.ts';
import { preparePart } from './postgres-part.ts';
import { launchServer } from './server-process.ts';

/** A receiver, a worker, Temporal and Postgres as processes to kill. The service has its own Postgres. */
export interface Rig {
  readonly parts: Readonly<Record<PartName, Part>>;
  readonly service: TestSandbox;
  readonly warehouse: Warehouse;
  readonly client: Client;
  /** The environment of the receiver, the worker and the commands. */
  readonly env: Readonly<Record<string, string>>;
  /** How the receiver and the worker start. A test may change this before a start. */
  readonly launch: Readonly<Record<Command, Launch>>;
  /** Creates another receiver or worker, with more variables. The rig stops it. */
  another(part: Command, env?: Readonly<Record<string, string>>): Part;
  /** The parts that `another` has created. */
  readonly others: readonly Part[];
  readonly receiverUrl: string;
  /** Runs `metersync` to its end, with the rig's settings. */
  run(args: readonly string[]): ReturnType<typeof runCommand>;
  /** Runs a full backfill to its end, and returns its state. */
  backfill(): Promise<RunState>;
  /** Notes that the fault does harm now. The times until alarms are measured from this moment. */
  harm(): void;
  /** The Unix times, in ms, of the harm so far. */
  readonly harmedAt: readonly number[];
  /** The Unix time, in ms, at which the worker's hurried clock shows the true time. */
  readonly epoch: number;
  /** Returns the lines that all processes of a part have printed. */
  said(part: Command): readonly string[];
  stop(): Promise<void>;
}

/** Ends a start that hangs. A run that passes does not depend on this time. */
const within = { timeoutMs: 300_000, everyMs: 50 };

type Command = 'receiver' | 'worker';

interface Launch {
  /** The variables of the part, in addition to the rig's environment. */
  readonly env: Record<string, string>;
  /** The checkout whose code the part runs. The default is this checkout. */
  checkout?: string;
}

/** The address of Temporal, and the part that starts and strikes it. */
export interface RunningTemporal {
  readonly part: Part;
  readonly address: string;
  readonly namespace: string;
  /** How the rig itself connects, in addition to the address. */
  readonly connect?: ConnectionOptions;
}

/** The address of Postgres, and the part that starts and strikes it. */
export interface RunningPostgres {
  readonly part: Part;
  /** URL of the warehouse's database, which exists. */
  readonly databaseUrl: string;
}

/** A way between two parts, on which a proxy can be. */
export type Way =
  | 'serviceAndReceiver'
  | 'receiverAndTemporal'
  | 'workerAndTemporal'
  | 'workerAndService'
  | 'workerAndPostgres';

export interface RigOptions {
  readonly size?: SandboxSize;
  /** Further options of the sandbox. */
  readonly sandbox?: Parameters<typeof startSandbox>[1];
  /** The folders of the servers' data. The default is a temporary folder. */
  readonly folders?: { readonly postgres?: string; readonly temporal?: string };
  /** A Postgres that is already running and outlives the rig. The default is an embedded Postgres. */
  readonly postgres?: RunningPostgres;
  /** A Temporal that is already running and outlives the rig. The default is a development server. */
  readonly temporal?: RunningTemporal;
  /** Functions that put a proxy between two parts. Each maps an address to the address to use instead. */
  readonly between?: Partial<Record<Way, (address: string) => Promise<string>>>;
  readonly env?: Readonly<Record<string, string>>;
  /** The checkout of an older release, whose schema, worker and receiver the rig begins with. */
  readonly older?: string;
  /** The interval between looks. The default is a second, because the pace of the alarms needs it. */
  readonly lookEverySeconds?: number;
}

export async function startRig(options: RigOptions = {}): Promise<Rig> {
  const folder = await temporaryFolder();
  const [servers, service, receiverPort] = await Promise.all([
    prepareServers({ postgres: folder.path, temporal: folder.path, ...options.folders }, options),
    startSandbox(options.size, options.sandbox),
    freePort(),
  ]);
  const { address, namespace, connect } = servers.temporal;
  const epoch = Date.now();
  const harmedAt: number[] = [];
  const receiverUrl = `http://127.0.0.1:${receiverPort}/webhooks`;
  const between = options.between ?? {};
  const env: Record<string, string> = {
    TEMPORAL_ADDRESS: address,
    TEMPORAL_NAMESPACE: namespace,
    DATABASE_URL: servers.postgres.databaseUrl,
    METERSYNC_DIR: folder.path,
    SERVICE_URL: service.apiUrl,
    SERVICE_API_KEY: service.apiKey,
    WEBHOOK_SECRETS: await service.register((await between.serviceAndReceiver?.(receiverUrl)) ?? receiverUrl),
    RECEIVER_PORT: String(receiverPort),
    LOG_LEVEL: 'warn',
    // Deliveries are lost on purpose, so more rows are absent than a run tombstones by default.
    DELETES_CAP_PERCENT: '100',
    // A run of a schedule would begin in one run of a fault and not in another.
    BACKFILL_CRON: 'none',
    RECONCILE_EVERY: 'none',
    [epochVariable]: String(epoch),
    ...options.env,
  };
  const launch: Rig['launch'] = { receiver: { env: {} }, worker: { env: {} } };
  const led = async (part: Command, variable: string, way: Way, target: string) => {
    const through = await between[way]?.(target);
    if (through !== undefined) launch[part].env[variable] = through;
  };
  await led('receiver', 'TEMPORAL_ADDRESS', 'receiverAndTemporal', address);
  await led('worker', 'TEMPORAL_ADDRESS', 'workerAndTemporal', address);
  await led('worker', 'SERVICE_URL', 'workerAndService', service.apiUrl);
  await led('worker', 'DATABASE_URL', 'workerAndPostgres', servers.postgres.databaseUrl);
  const lines = { receiver: [] as string[], worker: [] as string[] };
  const command = (part: Command, more: Readonly<Record<string, string>> = {}) =>
    createPart(part, () =>
      launchCommand(part, { ...env, ...launch[part].env, ...more }, launch[part], lines[part]),
    );
  const others: Part[] = [];
  const parts = {
    postgres: servers.postgres.part,
    temporal: servers.temporal.part,
    receiver: command('receiver'),
    worker: command('worker'),
  };
  await Promise.all([parts.postgres.start(), parts.temporal.start()]);
  await servers.createDatabase?.();
  const run = (args: readonly string[]) => runCommand(args, { env: { ...env, LOG_LEVEL: 'error' } });
  if (options.older !== undefined)
    for (const part of [launch.worker, launch.receiver]) part.checkout = options.older;
  const migrated =
    options.older === undefined
      ? await run(['migrate'])
      : await runProcess(['migrate'], { env, checkout: options.older });
  if (migrated.status !== 0) throw new Error(`metersync migrate: ${migrated.stderr}`);
  const warehouse = connectWarehouse({
    url: servers.postgres.databaseUrl,
    timeZone: 'UTC',
    max: 4,
    onError: () => {},
  });
  await watchEffects(warehouse);
  const connection = Connection.lazy({ ...connect, address });
  const client = new Client({ connection, namespace });
  await scheduleLooks(client, options.lookEverySeconds ?? 1);
  await Promise.all([parts.receiver.start(), parts.worker.start()]);
  return {
    parts,
    service,
    warehouse,
    client,
    env,
    launch,
    another: (part, more) => {
      const other = command(part, more);
      others.push(other);
      return other;
    },
    others,
    receiverUrl,
    run,
    backfill: async () => {
      const runId = await startBackfill(client);
      return await client.workflow.getHandle(workflowIds.backfill(runId)).result();
    },
    harm: () => void harmedAt.push(Date.now()),
    harmedAt,
    epoch,
    said: (part) => lines[part],
    stop: async () => {
      await warehouse.close();
      await connection.close();
      const own = options.temporal === undefined ? [parts.temporal] : [];
      for (const part of [parts.receiver, parts.worker, ...others, ...own]) await part.kill();
      // All processes of Postgres end with this signal and release their files.
      if (options.postgres === undefined) await parts.postgres.stop('SIGQUIT');
      await service.stop();
      await folder.remove();
    },
  };
}

/** Creates the schedule of the look first, because a worker does not change a schedule that exists. */
async function scheduleLooks(client: Client, everySeconds: number): Promise<void> {
  await client.schedule.create({
    scheduleId: scheduleIds.watch,
    spec: { intervals: [{ every: `${everySeconds} seconds` }] },
    action: {
      type: 'startWorkflow',
      workflowType: workflowNames.watch,
      taskQueue: taskQueues.backfill,
      args: [],
    },
    policies: { overlap: ScheduleOverlapPolicy.SKIP, catchupWindow: '10 seconds' },
  });
}

async function prepareServers(
  dirs: { postgres: string; temporal: string },
  given: Pick<RigOptions, 'postgres' | 'temporal'>,
): Promise<{
  postgres: RunningPostgres;
  temporal: RunningTemporal;
  createDatabase?: () => Promise<unknown>;
}> {
  prepareFolder(dirs.temporal);
  const ports = await choosePorts(dirs.temporal);
  const temporal = given.temporal ?? (await developmentServer(dirs.temporal, ports));
  if (given.postgres !== undefined) return { postgres: given.postgres, temporal };
  const { part, users } = await preparePart(dirs.postgres, ports.postgres);
  return {
    postgres: { part, databaseUrl: users.superuserUrl('metersync') },
    temporal,
    createDatabase: () => users.ensureDatabase('metersync'),
  };
}

async function developmentServer(dir: string, ports: Ports): Promise<RunningTemporal> {
  const binary = await findTemporal({ log: () => {} });
  const temporal = temporalServer({ dir, binary, port: ports.temporal });
  const part = createPart('temporal', () =>
    launchServer(temporal.server, () =>
      until('Temporal answers', () => temporalAnswers(temporal.address), within),
    ),
  );
  return { part, address: temporal.address.address, namespace: 'default' };
}

function launchCommand(
  part: Command,
  env: Rig['env'],
  { checkout }: Pick<Launch, 'checkout'>,
  lines: string[],
): Life {
  const command = startCommand([part], {
    env: { ...env, LOG_LEVEL: 'info' },
    ...(part === 'worker' ? { program: 'test/faults/hurried-worker.ts' } : {}),
    ...(checkout === undefined ? {} : { checkout }),
  });
  const pattern = part === 'worker' ? /worker: running/ : /receiver: POST/;
  const ready = command.printed(pattern, 300_000);
  const ended = command.ended.then(({ status, signal }) => {
    const said = command.stdout().split('\n').concat(command.stderr().split('\n'));
    lines.push(...said);
    return `${signal ?? `status ${status}`}: ${said.slice(-3).join(' | ')}`;
  });
  return { pid: command.pid, ready, ended };
}
