import type { Monitor } from '../../app/process/monitor.ts';
import { allOf, type Running, type ServerWait, whenThere } from '../../app/process/running.ts';
import { secretsOf, startReceiver } from '../../app/receiver-part.ts';
import { sandboxFile } from '../../app/stack.ts';
import { awaitTemporal } from '../../app/temporal/arrival.ts';
import type { RunningWorker, WorkerOverrides } from '../../app/worker-part.ts';
import { monitorPolicy } from '../../contract/retry-policy.ts';
import type { Health } from '../../health/measured.ts';
import { sandboxControl } from '../../sandbox/control/client.ts';
import { type Context, openContext } from '../context.ts';
import { CommandError, UsageError } from '../output.ts';
import { untilAsked } from '../signals.ts';

type Part = 'receiver' | 'worker' | 'console';

/** Makes what a test replaces in the worker, from what the worker would have without the test. */
type Overrides = (given: { readonly readHealth: ReadHealth }) => WorkerOverrides;
type ReadHealth = ReturnType<typeof import('../../operations/health.ts').healthOf>;

/** `metersync start`, `receiver`, `worker`: runs the parts until it is asked to stop. Servers may be away. */
export async function start(
  parts: readonly Part[],
  options: { live?: number; temporalUi?: boolean; overrides?: Overrides } = {},
): Promise<void> {
  const works = parts.includes('worker');
  const receives = parts.includes('receiver');
  const { temporalUi = false } = options;
  const context = await openContext({
    postgres: works,
    temporal: true,
    temporalUi,
    service: works,
    // A second receiver of the sandbox would take the endpoint from the first.
    alone: works && receives,
    quiet: false,
  });
  const { log, stack, sandbox } = context;
  if (options.live !== undefined && sandbox === undefined) {
    await context.stop();
    throw new UsageError('--live makes changes in the sandbox, which runs only if SERVICE_URL is not set');
  }
  if (temporalUi && stack.temporalUi === undefined) {
    await context.stop();
    throw new UsageError(
      '--temporal-ui needs the embedded Temporal, which runs only if TEMPORAL_ADDRESS is not set',
    );
  }
  const running: Running[] = [];
  const monitor = await monitorOf(parts, context);
  const drain = async () => {
    await Promise.all(running.map((part) => part.stop()));
    await context.stop();
    log.info('stopped');
  };
  const begin = async () => {
    for (const line of stack.standIns) log.info(line);
    for (const { saw, todo } of context.insecure) log.warn({ todo }, saw);
    const door = receives ? doorOf(context) : undefined;
    const port = await monitor?.serve();
    if (port !== undefined) running.push(port);
    const temporalWait = await awaitTemporal(stack.temporal, log);
    const refused = temporalWait.arrived.then(() => never);
    // A refusal is reported once everything has begun; an unhandled rejection would end the process before.
    refused.catch(() => {});
    running.push({ finished: refused, stop: () => temporalWait.stop() });
    let worker: RunningWorker | undefined;
    if (works) {
      running.push(
        await work(context, temporalWait, monitor, options.overrides, (begun) => {
          worker = begun;
        }),
      );
    }
    if (door !== undefined) {
      const { secrets, listening } = await door();
      const receiver = await startReceiver({
        settings: context.settings,
        secrets,
        temporal: stack.temporal,
        temporalWait,
        startHere: () => worker?.startHere,
        observer: monitor?.receiver,
        log,
      });
      running.push(receiver);
      await listening(receiver.url);
      log.info(`receiver: POST ${receiver.url}`);
    }
    if (parts.includes('console')) await openConsole(context, running);
    if (sandbox !== undefined && options.live !== undefined) {
      await sandboxControl(sandbox).live(options.live);
      log.info(`the sandbox makes ${options.live} changes per minute`);
    }
    return [context.finished, ...running.map((part) => part.finished)];
  };
  await untilAsked(process, {
    begin,
    onAsked: (signal) => log.info(`${signal}: draining; send it again to force the end`),
    drain,
  });
}

const never = new Promise<void>(() => {});

/** Serves the console, unless CONSOLE_PORT is 0. If that is not possible, work goes on without the console. */
async function openConsole(context: Context, running: Running[]): Promise<void> {
  const { settings, log } = context;
  if (settings.console.port === 0) return;
  const { startConsole } = await import('./console.ts');
  try {
    running.push(await startConsole(context));
  } catch (error) {
    if (!(error instanceof CommandError)) throw error;
    log.error(`the console is not served, because ${error.message}`);
  }
}

/** Makes the monitor of this process; undefined if METRICS_PORT is 0. */
async function monitorOf(parts: readonly Part[], context: Context): Promise<Monitor | undefined> {
  const { settings, stack, log } = context;
  if (settings.metrics.port === 0) return undefined;
  const { createMonitor } = await import('../../app/process/monitor.ts');
  let reading: Promise<() => Promise<Health>> | undefined;
  const beginReading = async (): Promise<() => Promise<Health>> => {
    const [{ openWarehouse }, { healthOf }] = await Promise.all([
      import('../../app/warehouse.ts'),
      import('../../operations/health.ts'),
    ]);
    const { databaseUrl, temporal } = stack;
    const { db } = openWarehouse(settings, databaseUrl, log, 1);
    const read = healthOf({ settings, databaseUrl, temporal, answerMs: monitorPolicy.answerMs });
    return () => read(db);
  };
  const readHealth = async (): Promise<Health> => {
    reading ??= beginReading();
    return await (await reading)();
  };
  const watched = parts.filter((part) => part !== 'console');
  return await createMonitor({ settings: settings.metrics, parts: watched, readHealth, log });
}

async function work(
  context: Context,
  temporalWait: ServerWait,
  monitor: Monitor | undefined,
  overrides: Overrides = () => ({}),
  onBegun: (worker: RunningWorker) => void,
): Promise<Running> {
  const { settings, stack, service, log } = context;
  const { databaseUrl, temporal } = stack;
  // Loaded only for a worker: a receiver needs neither a warehouse nor Temporal's native library.
  const [{ migrate, awaitWarehouse }, { installRuntime }, { startWorker }, { healthOf }] = await Promise.all([
    import('../../app/schema.ts'),
    import('../../app/temporal/native.ts'),
    import('../../app/worker-part.ts'),
    import('../../operations/health.ts'),
  ]);
  installRuntime(log, monitor?.core);
  if (settings.databaseUrl === undefined) await migrate(settings, databaseUrl, log);
  const needed = allOf([temporalWait, await awaitWarehouse({ settings, url: databaseUrl, log })]);
  const begin = async (): Promise<Running> => {
    const readHealth = healthOf({ settings, databaseUrl, temporal });
    const worker = await startWorker(
      { settings, service, databaseUrl, temporal, readHealth, observer: monitor?.worker, log },
      overrides({ readHealth }),
    );
    log.info({ service: service.url }, 'worker: running');
    onBegun(worker);
    return worker;
  };
  return needed.isThere() ? await begin() : whenThere(needed, begin);
}

interface Door {
  readonly secrets: ReturnType<typeof secretsOf>;
  /** Call it with the address of the receiver when that listens. */
  readonly listening: (url: string) => Promise<void>;
}

/**
 * Returns how to get the signing secrets: from the settings, or from the sandbox. The sandbox sends its messages
 * to the receiver once that has its port, because a start without it must not take the endpoint from another.
 * @throws UsageError when there are no secrets, Error when some are wrong
 */
function doorOf({ settings, sandbox, log }: Context): () => Promise<Door> {
  const { webhooks } = settings;
  if (webhooks.secrets.length > 0 || webhooks.secretsFile !== undefined) {
    const secrets = secretsOf(webhooks, log);
    return async () => ({ secrets, listening: async () => {} });
  }
  if (sandbox === undefined) {
    throw new UsageError(
      "WEBHOOK_SECRETS (or WEBHOOK_SECRETS_FILE) has to be set: the signing secret of your endpoint, from the service's webhook portal",
    );
  }
  return async () => {
    const endpoint = await sandboxControl(sandbox).endpoint();
    const listening = async (url: string) => {
      const { webhooksOf } = await import('../../app/service.ts');
      await webhooksOf({ url: sandbox.apiUrl, apiKey: sandbox.apiKey }).enable(true);
      await endpoint.moveTo(url);
      log.info(
        `SERVICE_URL is not set: the sandbox runs at ${sandbox.url}, API ${sandbox.apiUrl}; its key is in ${sandboxFile(settings.dataDir)}`,
      );
    };
    return { secrets: secretsOf({ ...webhooks, secrets: [endpoint.secret] }, log), listening };
  };
}
