import {
  Client,
  Connection,
  ScheduleAlreadyRunning,
  ScheduleOverlapPolicy,
  WorkflowNotFoundError,
} from '@temporalio/client';
import { type DataConverter, WorkflowExecutionAlreadyStartedError } from '@temporalio/common';
import { loadClientConnectConfig } from '@temporalio/envconfig';
import { NativeConnection, Runtime } from '@temporalio/worker';
import type { Logger } from 'pino';
import {
  type CatchUpKind,
  scheduleIds,
  signalNames,
  taskQueues,
  workflowIds,
  workflowNames,
} from '../contract/names.ts';
import type { Start } from '../receiver/start-group.ts';
import { type CodecKey, type Plaintext, payloadCodec } from './payload-codec.ts';
import { SettingsError } from './settings.ts';

/** Where Temporal is: the embedded one, or what Temporal's own environment configuration says. */
export interface TemporalPlace {
  readonly address?: string | undefined;
  readonly namespace?: string | undefined;
  /** Keys of what is encrypted there; the first encrypts. Nothing is when there are none. */
  readonly codecKeys?: readonly CodecKey[] | undefined;
  /** What becomes of a payload that is not encrypted, where there are keys; refused when not given. */
  readonly plaintext?: Plaintext | undefined;
}

/** How payloads are written for Temporal, by clients, workers and replays alike. */
export function dataConverterOf({ codecKeys = [], plaintext }: TemporalPlace): DataConverter {
  return { payloadCodecs: [payloadCodec(codecKeys, plaintext)] };
}

const connectTimeout = '10 seconds';

/** @throws SettingsError when Temporal's own configuration is wrong */
export function connectOptions(place: TemporalPlace) {
  const configured = configuration();
  return {
    connectionOptions: {
      ...configured.connectionOptions,
      ...(place.address === undefined ? {} : { address: place.address }),
    },
    namespace: place.namespace ?? configured.namespace ?? 'default',
  };
}

function configuration(): ReturnType<typeof loadClientConnectConfig> {
  try {
    return loadClientConnectConfig();
  } catch (error) {
    // What follows the first line quotes the file, where an API key may stand.
    const [reason] = (error as Error).message.split('\n');
    const line = (error as { line?: number }).line;
    const where = line === undefined ? '' : `, line ${line}`;
    throw new SettingsError([
      `TEMPORAL_CONFIG_FILE, TEMPORAL_PROFILE and TEMPORAL_TLS_… have to be right together: ${reason}${where}`,
    ]);
  }
}

/** Temporal's address, as a person knows it. */
export function whereIs(place: TemporalPlace): string {
  return `Temporal at ${connectOptions(place).connectionOptions.address ?? 'localhost:7233'} (TEMPORAL_ADDRESS)`;
}

/** How long a client that lost Temporal waits at most before it connects again. */
const reconnectMs = 2_000;

/** A client that connects when it is used first, and its connection to close: Temporal need not be there. */
export function lazyClient(place: TemporalPlace): { client: Client; close(): Promise<void> } {
  const { connectionOptions, namespace } = connectOptions(place);
  const channelArgs = { 'grpc.max_reconnect_backoff_ms': reconnectMs };
  const connection = Connection.lazy({ ...connectionOptions, channelArgs });
  const client = new Client({ connection, namespace, dataConverter: dataConverterOf(place) });
  return { client, close: () => connection.close() };
}

/** A client, and its connection to close. Connecting is tried for some seconds. */
export async function connectClient(
  place: TemporalPlace,
): Promise<{ client: Client; close(): Promise<void> }> {
  const { connectionOptions, namespace } = connectOptions(place);
  const connection = await Connection.connect({ ...connectionOptions, connectTimeout }).catch(
    (error: unknown) => {
      throw inWords(error, place);
    },
  );
  const client = new Client({ connection, namespace, dataConverter: dataConverterOf(place) });
  return { client, close: () => connection.close() };
}

/** The connection of workers. */
export async function connectNative(
  place: TemporalPlace,
): Promise<{ connection: NativeConnection; namespace: string; dataConverter: DataConverter }> {
  const { connectionOptions, namespace } = connectOptions(place);
  const connection = await NativeConnection.connect(connectionOptions).catch((error: unknown) => {
    throw inWords(error, place);
  });
  return { connection, namespace, dataConverter: dataConverterOf(place) };
}

/** Where nobody answered: the library's errors name no address. */
function inWords(error: unknown, place: TemporalPlace): Error {
  return new Error(`${whereIs(place)}: ${error instanceof Error ? error.message : String(error)}`, {
    cause: error,
  });
}

/** Once a process, before any worker: Temporal's own logs go to ours, and signals stay with us. */
export function installRuntime(log: Logger): void {
  const level = (name: string) =>
    name === 'TRACE' || name === 'DEBUG'
      ? 'debug'
      : name === 'INFO'
        ? 'debug'
        : name === 'WARN'
          ? 'warn'
          : 'error';
  const logger = {
    log: (name: string, message: string, meta?: object) => log[level(name)](meta ?? {}, message),
    trace: (message: string, meta?: object) => log.trace(meta ?? {}, message),
    debug: (message: string, meta?: object) => log.debug(meta ?? {}, message),
    info: (message: string, meta?: object) => log.debug(meta ?? {}, message),
    warn: (message: string, meta?: object) => log.warn(meta ?? {}, message),
    error: (message: string, meta?: object) => log.error(meta ?? {}, message),
  };
  Runtime.install({ logger, shutdownSignals: [] });
}

/** Starts applyEvents for a group; resolves when Temporal has it on disk, also when an earlier try put it there. */
export function startOf(client: Client): Start {
  return async ({ workflowId, group, withinMs }) => {
    try {
      // A deadline on the wire: the client's own retries would outlast the service's patience (seed 4.1.2).
      await client.withDeadline(Date.now() + withinMs, () =>
        client.workflow.start(workflowNames.applyEvents, {
          workflowId,
          taskQueue: taskQueues.events,
          args: [group],
          workflowIdReusePolicy: 'REJECT_DUPLICATE',
          workflowIdConflictPolicy: 'USE_EXISTING',
        }),
      );
    } catch (error) {
      if (error instanceof WorkflowExecutionAlreadyStartedError) return;
      throw error;
    }
  };
}

/** Wakes the catch-up of a kind, or starts it. */
export function wakeOf(client: Client): (kind: CatchUpKind) => Promise<void> {
  return async (kind) => {
    await client.workflow.signalWithStart(workflowNames.catchUp, {
      workflowId: workflowIds.catchUp(kind),
      taskQueue: taskQueues.events,
      args: [{ kind }],
      signal: signalNames.wake,
    });
  };
}

/** Makes the function that says whether a workflow of an id is running. */
export function isRunningOn(client: Client): (workflowId: string) => Promise<boolean> {
  return async (workflowId) => {
    try {
      const { status } = await client.workflow.getHandle(workflowId).describe();
      return status.name === 'RUNNING';
    } catch (error) {
      if (error instanceof WorkflowNotFoundError) return false;
      throw error;
    }
  };
}

/**
 * The schedules that are no choice of anybody's: the one that looks once a minute whether something waits, so that no
 * wake-up can be lost, and the one that drops old payloads once an hour.
 */
export async function ensureOwnSchedules(client: Client): Promise<void> {
  await ensureEvery(client, '1 minute', 'wakeCatchUps', taskQueues.events);
  await ensureEvery(client, '1 hour', 'dropPayloads', taskQueues.backfill);
}

async function ensureEvery(
  client: Client,
  every: '1 minute' | '1 hour',
  name: 'wakeCatchUps' | 'dropPayloads',
  taskQueue: string,
): Promise<void> {
  try {
    await client.schedule.create({
      scheduleId: scheduleIds[name],
      spec: { intervals: [{ every }] },
      action: { type: 'startWorkflow', workflowType: workflowNames[name], taskQueue, args: [] },
      policies: { overlap: ScheduleOverlapPolicy.SKIP, catchupWindow: '1 minute' },
    });
  } catch (error) {
    if (!(error instanceof ScheduleAlreadyRunning)) throw error;
  }
}
