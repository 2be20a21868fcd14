import {
  Client,
  Connection,
  type ConnectionOptions,
  defaultGrpcRetryOptions,
  makeGrpcRetryInterceptor,
  ScheduleAlreadyRunning,
  ScheduleOverlapPolicy,
  WorkflowNotFoundError,
} from '@temporalio/client';
import { type DataConverter, WorkflowExecutionAlreadyStartedError } from '@temporalio/common';
import proto from '@temporalio/proto';
import { scheduleIds, taskQueues, workflowIds, workflowNames } from '../../contract/names.ts';
import { ownRunsWithinMs, serverWaits } from '../../contract/retry-policy.ts';
import type { Start } from '../../receiver/starts.ts';
import { TemporalAway } from './arrival.ts';
import { payloadCodec } from './payload-codec.ts';
import { connectOptions, direct, type TemporalPlace } from './place.ts';

export function dataConverterOf({ codecKeys = [], plaintext }: TemporalPlace): DataConverter {
  return { payloadCodecs: [payloadCodec(codecKeys, plaintext)] };
}

/** Makes a client that connects at its first use, so Temporal need not be there yet. */
export function lazyClient(place: TemporalPlace): { client: Client; close(): Promise<void> } {
  const { connectionOptions, namespace } = connectOptions(place);
  const channelArgs = { ...direct, 'grpc.max_reconnect_backoff_ms': serverWaits.temporalReconnectMs };
  const connection = Connection.lazy({ ...connectionOptions, channelArgs, interceptors: [...retries] });
  const client = new Client({ connection, namespace, dataConverter: dataConverterOf(place) });
  return { client, close: () => connection.close() };
}

/**
 * Connects a client. The first request is not retried, so a refused connection fails at once.
 * @throws TemporalAway if Temporal does not answer in time or has no such namespace
 */
export async function connectClient(
  place: TemporalPlace,
  withinMs: number = serverWaits.temporalConnectMs,
): Promise<{ client: Client; close(): Promise<void> }> {
  const { connectionOptions, namespace } = connectOptions(place);
  let answered = false;
  const connection = Connection.lazy({
    ...connectionOptions,
    channelArgs: direct,
    interceptors: retriesIf(() => answered),
  });
  const close = () => connection.close();
  try {
    await connection.withDeadline(Date.now() + withinMs, () =>
      connection.workflowService.describeNamespace({ namespace }),
    );
  } catch (error) {
    await close();
    throw new TemporalAway(place, error);
  }
  answered = true;
  const client = new Client({ connection, namespace, dataConverter: dataConverterOf(place) });
  return { client, close };
}

/** Works with a client that it connects, and closes it. Somebody waits, so Temporal has to answer soon. */
export async function withClient<T>(
  place: TemporalPlace,
  work: (client: Client) => Promise<T>,
  withinMs: number = serverWaits.answerMs,
): Promise<T> {
  const { client, close } = await connectClient(place, withinMs);
  try {
    return await work(client);
  } finally {
    await close();
  }
}

/**
 * Makes the function that starts applyEvents for a group. It resolves when Temporal has the group on disk,
 * also from an earlier attempt. If `eager`, the answer may carry the first task to this client's worker.
 */
export function starterOf(client: Client, { eager = false }: { eager?: boolean } = {}): Start {
  return async ({ workflowId, group, withinMs }) => {
    try {
      // A deadline on the wire: the client's own retries would outlast the service's patience (service.md 4.1.2).
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

/** Makes the function that starts the sweep, unless it runs. */
export function startSweepOf(client: Client): () => Promise<void> {
  return async () => {
    await client.workflow.start(workflowNames.sweep, {
      workflowId: workflowIds.sweep,
      taskQueue: taskQueues.events,
      workflowIdConflictPolicy: 'USE_EXISTING',
      args: [],
    });
  };
}

const overAs: Readonly<Record<string, string>> = {
  COMPLETED: 'completed',
  FAILED: 'failed',
  CANCELLED: 'cancelled',
  TERMINATED: 'terminated',
  TIMED_OUT: 'timed out',
};

/** Creates the function that returns how a workflow ended: undefined while it runs, `gone` if unknown. */
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
 * Creates the schedules that no command changes: the watch, which begins at once because it may not have run
 * for a long time, and the hourly drop of old payloads. Both use the queue of backfills, because tasks of the
 * queue of events may wait for Postgres. An existing schedule keeps its times and pause.
 */
export async function ensureOwnSchedules(client: Client): Promise<void> {
  await ensureEvery(client, '1 minute', 'watch');
  await client.schedule.getHandle(scheduleIds.watch).trigger(ScheduleOverlapPolicy.SKIP);
  await ensureEvery(client, '1 hour', 'dropPayloads');
}

async function ensureEvery(
  client: Client,
  every: '1 minute' | '1 hour',
  name: keyof typeof ownRunsWithinMs,
): Promise<void> {
  const scheduleId = scheduleIds[name];
  const action = {
    type: 'startWorkflow' as const,
    workflowType: workflowNames[name],
    taskQueue: taskQueues.backfill,
    workflowExecutionTimeout: ownRunsWithinMs[name],
    args: [],
  };
  const policies = { overlap: ScheduleOverlapPolicy.SKIP, catchupWindow: '1 minute' as const };
  try {
    await client.schedule.create({ scheduleId, spec: { intervals: [{ every }] }, action, policies });
  } catch (error) {
    if (!(error instanceof ScheduleAlreadyRunning)) throw error;
    await client.schedule.getHandle(scheduleId).update((before) => ({ ...before, action, policies }));
  }
}

type Interceptor = NonNullable<ConnectionOptions['interceptors']>[number];
type Call = ReturnType<Parameters<Interceptor>[1]>;

/** gRPC's CANCELLED, which is not tried again. */
const cancelled = 1;

/** Ends a retry whose connection was closed. The SDK would throw in a timer and so end the process. */
const endWhenClosed = ((options, nextCall) => {
  try {
    return nextCall(options);
  } catch (error) {
    return endedCall((error as Error).message);
  }
}) as Interceptor;

function endedCall(details: string): Call {
  const nothing = (): void => {};
  return {
    start: (metadata, listener) => listener?.onReceiveStatus?.({ code: cancelled, details, metadata }),
    sendMessage: nothing,
    sendMessageWithContext: nothing,
    startRead: nothing,
    halfClose: nothing,
    cancelWithStatus: nothing,
    getPeer: () => '',
    getAuthContext: () => null,
  };
}

/** Retries requests as the SDK does by default, without harm when their connection is closed meanwhile. */
export const retries: readonly Interceptor[] = retriesIf(() => true);

/** Like `retries`, but a request is retried only if `isOn` returns true when it has failed. */
function retriesIf(isOn: () => boolean): Interceptor[] {
  const usual = defaultGrpcRetryOptions();
  const retryableDecider: typeof usual.retryableDecider = (...failed) =>
    isOn() && usual.retryableDecider(...failed);
  return [makeGrpcRetryInterceptor({ ...usual, retryableDecider }), endWhenClosed];
}

const { TaskQueueType, WorkerVersioningMode } = proto.temporal.api.enums.v1;

interface QueuePollers {
  /** Whether a worker of the queue is running, even if its slots are all in use. */
  readonly polled: boolean;
  /** The workers that Temporal gives its tasks to, if none of them polls; otherwise null. */
  readonly absent: string | null;
}

const { TASK_QUEUE_TYPE_ACTIVITY: activities, TASK_QUEUE_TYPE_WORKFLOW: workflows } = TaskQueueType;

/**
 * Reads who polled a queue in the last five minutes. A worker without a free slot still polls for workflow
 * tasks. The queue of checks has none, so the watch, in the same process, stands for its worker.
 */
export async function readPollers(client: Client, queue: keyof typeof taskQueues): Promise<QueuePollers> {
  const describe = async (name: keyof typeof taskQueues, taskQueueType: number) =>
    await client.workflowService.describeTaskQueue({
      namespace: client.options.namespace,
      taskQueue: { name: taskQueues[name] },
      taskQueueType,
    });
  const answers = await Promise.all([
    describe(queue, activities),
    queue === 'checks' ? describe('watch', activities) : describe(queue, workflows),
  ]);
  const pollers = answers.flatMap((answer) => answer.pollers ?? []);
  const [current = null] = answers.flatMap(
    ({ versioningInfo }) => versioningInfo?.currentDeploymentVersion?.buildId || [],
  );
  const versioned = pollers.filter(
    ({ deploymentOptions }) =>
      deploymentOptions?.workerVersioningMode === WorkerVersioningMode.WORKER_VERSIONING_MODE_VERSIONED,
  );
  const isServed =
    current === null
      ? versioned.length < pollers.length
      : versioned.some(({ deploymentOptions }) => deploymentOptions?.buildId === current);
  return {
    polled: pollers.length > 0,
    absent: isServed || pollers.length === 0 ? null : current === null ? 'no build' : `build ${current}`,
  };
}

/** Whether a worker polls a queue. Without a worker, work would wait forever. */
export const workerIsPolling = async (client: Client, queue: keyof typeof taskQueues): Promise<boolean> =>
  (await readPollers(client, queue)).polled;
