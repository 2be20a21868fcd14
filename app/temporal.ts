import {
  Client,
  Connection,
  ScheduleAlreadyRunning,
  ScheduleOverlapPolicy,
  WorkflowNotFoundError,
} from '@temporalio/client';
import { type DataConverter, WorkflowExecutionAlreadyStartedError } from '@temporalio/common';
import {
  type CatchUpKind,
  scheduleIds,
  signalNames,
  taskQueues,
  workflowIds,
  workflowNames,
} from '../contract/names.ts';
import type { Start } from '../receiver/start-group.ts';
import { payloadCodec } from './payload-codec.ts';
import { absenceOf } from './temporal-absence.ts';
import { connectOptions, type TemporalPlace, whereIs } from './temporal-place.ts';

/** How payloads are written for Temporal, by clients, workers and replays alike. */
export function dataConverterOf({ codecKeys = [], plaintext }: TemporalPlace): DataConverter {
  return { payloadCodecs: [payloadCodec(codecKeys, plaintext)] };
}

const connectTimeoutMs = 10_000;

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

/**
 * A client, and its connection to close. Connecting is tried for some seconds.
 * @throws Error that says what to do where Temporal is away, or knows no such namespace
 */
export async function connectClient(
  place: TemporalPlace,
  withinMs = connectTimeoutMs,
): Promise<{ client: Client; close(): Promise<void> }> {
  const { connectionOptions, namespace } = connectOptions(place);
  const connectTimeout = withinMs;
  let connection: Connection | undefined;
  try {
    connection = await Connection.connect({ ...connectionOptions, connectTimeout });
    const { workflowService } = connection;
    await connection.withDeadline(Date.now() + withinMs, () =>
      workflowService.describeNamespace({ namespace }),
    );
  } catch (error) {
    await connection?.close();
    const { refused, words, reason } = absenceOf(error, whereIs(place), namespace);
    throw new Error(
      refused ? `${words} (${reason})` : `${words}: bring it up, or correct TEMPORAL_ADDRESS (${reason})`,
      {
        cause: error,
      },
    );
  }
  const open = connection;
  const client = new Client({ connection: open, namespace, dataConverter: dataConverterOf(place) });
  return { client, close: () => open.close() };
}

/**
 * Starts applyEvents for a group; resolves when Temporal has it on disk, also when an earlier try put it there.
 * @param options.eager whether Temporal may hand the first task to the worker on this client's connection, with its answer
 */
export function startOf(client: Client, { eager = false }: { eager?: boolean } = {}): Start {
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
          requestEagerStart: eager,
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

/** How Temporal says that a workflow is over. */
const overAs: Readonly<Record<string, string>> = {
  COMPLETED: 'completed',
  FAILED: 'failed',
  CANCELLED: 'cancelled',
  TERMINATED: 'terminated',
  TIMED_OUT: 'timed out',
};

/** Makes the function that says how a workflow ended: undefined while it runs, `gone` where Temporal has none of that id. */
export function howEndedOn(client: Client): (workflowId: string) => Promise<string | undefined> {
  return async (workflowId) => {
    try {
      const { status } = await client.workflow.getHandle(workflowId).describe();
      return overAs[status.name];
    } catch (error) {
      if (error instanceof WorkflowNotFoundError) return 'gone';
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
