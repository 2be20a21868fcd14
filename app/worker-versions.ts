import { setTimeout as delay } from 'node:timers/promises';
import {
  type Client,
  isGrpcServiceError,
  ServiceError,
  type WorkflowHandle,
  type WorkflowStartOptions,
} from '@temporalio/client';
import proto from '@temporalio/proto';
import { taskQueues, workflowNames } from '../contract/names.ts';
import { serverWaits } from '../contract/retry-policy.ts';
import { readPollers } from './queue-pollers.ts';

/** Status codes of gRPC. */
const [notFound, failedPrecondition] = [5, 9];

const { VersionDrainageStatus } = proto.temporal.api.enums.v1;

/** A build of the workers, as Temporal knows it. */
export interface WorkerBuild {
  readonly buildId: string;
  /** Whether a worker of it asks for work now. */
  readonly polls: boolean;
  /**
   * `current`: it gets new workflows and those that run. `ramping`: a part of them. `draining`: runs
   * that began on it still go on. `inactive`: it was never promoted.
   */
  readonly state: 'current' | 'ramping' | 'draining' | 'drained' | 'inactive';
}

export interface WorkerBuilds {
  /** Newest first. */
  readonly builds: readonly WorkerBuild[];
  readonly current: string | null;
  readonly ramping: { readonly buildId: string; readonly percent: number } | null;
  /** The build that was current before; null if none was, or if workers without a build had the work. */
  readonly previous: string | null;
  /** Whether the last change was a rollback: the previous build is the one that it left. */
  readonly isRolledBack: boolean;
}

/** Names a rollback as the last change, which Temporal keeps and shows. */
const rollbackIdentity = 'metersync workers rollback';

/**
 * Reads the builds of a deployment, and which of them gets work.
 * @throws Error that says what to do when Temporal knows no such deployment
 */
export async function readBuilds(client: Client, deploymentName: string): Promise<WorkerBuilds> {
  const { namespace } = client.options;
  const [{ workerDeploymentInfo }, { pollers }] = await Promise.all([
    client.workflowService.describeWorkerDeployment({ namespace, deploymentName }).catch((error) => {
      if (!isGrpcServiceError(error) || Number(error.code) !== notFound) throw error;
      const todo = 'start a worker of it, or correct TEMPORAL_DEPLOYMENT_NAME';
      throw new Error(`Temporal knows no deployment ${deploymentName}: ${todo}`, { cause: error });
    }),
    client.workflowService.describeTaskQueue({ namespace, taskQueue: { name: taskQueues.events } }),
  ]);
  const { versionSummaries, routingConfig, lastModifierIdentity } = workerDeploymentInfo ?? {};
  const polling = new Set((pollers ?? []).map(({ deploymentOptions }) => deploymentOptions?.buildId));
  const current = routingConfig?.currentDeploymentVersion?.buildId || null;
  const rampingId = routingConfig?.rampingDeploymentVersion?.buildId || null;
  const known = (versionSummaries ?? []).map((summary) => ({
    buildId: summary.deploymentVersion?.buildId ?? '',
    createdAt: secondsOf(summary.createTime),
    wasCurrentAt: secondsOf(summary.lastCurrentTime),
    lostWorkAt: secondsOf(summary.lastDeactivationTime),
    drainage: summary.drainageInfo?.status,
  }));
  const stateOf = ({ buildId, drainage }: (typeof known)[number]): WorkerBuild['state'] => {
    if (buildId === current) return 'current';
    if (buildId === rampingId) return 'ramping';
    if (drainage === VersionDrainageStatus.VERSION_DRAINAGE_STATUS_DRAINING) return 'draining';
    return drainage === VersionDrainageStatus.VERSION_DRAINAGE_STATUS_DRAINED ? 'drained' : 'inactive';
  };
  const [before] = known
    .filter(({ buildId, wasCurrentAt }) => buildId !== current && wasCurrentAt > 0)
    .sort((a, b) => b.wasCurrentAt - a.wasCurrentAt);
  // A build that lost the work earlier lost it to workers without a build.
  const isPrevious =
    before !== undefined && before.lostWorkAt >= secondsOf(routingConfig?.currentVersionChangedTime);
  return {
    builds: known
      .sort((a, b) => b.createdAt - a.createdAt)
      .map((build) => ({ buildId: build.buildId, polls: polling.has(build.buildId), state: stateOf(build) })),
    current,
    ramping:
      rampingId === null
        ? null
        : { buildId: rampingId, percent: routingConfig?.rampingVersionPercentage ?? 0 },
    previous: isPrevious ? before.buildId : null,
    isRolledBack: lastModifierIdentity === rollbackIdentity,
  };
}

const secondsOf = (time: { seconds?: unknown; nanos?: unknown } | null | undefined): number =>
  Number(time?.seconds ?? 0) + Number(time?.nanos ?? 0) / 1e9;

/**
 * Gives work to a build: all of it, or a percentage of the workflows. First the watch runs on this build
 * alone.
 * @throws Error when no worker of it polls, or the watch does not end on it: then nothing has changed
 */
export async function promote(
  client: Client,
  deploymentName: string,
  buildId: string,
  { percent, identity = '' }: { readonly percent?: number | undefined; readonly identity?: string } = {},
): Promise<void> {
  await ended(await startOnBuild(client, deploymentName, buildId), `build ${buildId}`);
  const { namespace } = client.options;
  const change = { namespace, deploymentName, buildId, identity };
  if (percent === undefined) await client.workflowService.setWorkerDeploymentCurrentVersion(change);
  else await client.workflowService.setWorkerDeploymentRampingVersion({ ...change, percentage: percent });
}

/**
 * Takes a ramp back; without one, promotes the build that was current before. Returns the build that has the
 * work; null for workers without one, which have it before the first promotion.
 * @throws Error when there is none, it cannot be promoted, or the last change was a rollback: then nothing has
 * changed
 */
export async function rollBack(client: Client, deploymentName: string): Promise<string | null> {
  const { ramping, current, previous, isRolledBack } = await readBuilds(client, deploymentName);
  if (ramping !== null) {
    const { namespace } = client.options;
    const change = { namespace, deploymentName, identity: rollbackIdentity, percentage: 0 };
    await client.workflowService.setWorkerDeploymentRampingVersion(change);
    return current;
  }
  if (isRolledBack)
    throw new Error(
      'the last change was a rollback: metersync workers promote BUILD gives the work to another build of metersync workers list',
    );
  if (previous === null) await demote(client, deploymentName, current);
  else await promote(client, deploymentName, previous, { identity: rollbackIdentity });
  return previous;
}

/**
 * Gives the work to workers without a build, then runs the watch on them: no run can be pinned to them. Takes
 * the work back if that does not end, as Temporal lists workers for minutes after they are gone.
 */
async function demote(client: Client, deploymentName: string, current: string | null): Promise<void> {
  if (!(await readPollers(client, 'events')).versionless)
    throw new Error('no other build was current before');
  const change = { namespace: client.options.namespace, deploymentName };
  // An empty build id stands for the workers without one.
  const to = { ...change, buildId: '', identity: rollbackIdentity };
  await client.workflowService.setWorkerDeploymentCurrentVersion(to);
  try {
    await ended(await startWatch(client, deploymentName), 'workers without a build');
  } catch (error) {
    const back = { ...change, buildId: current ?? '' };
    await client.workflowService.setWorkerDeploymentCurrentVersion(back);
    throw error;
  }
}

async function ended(run: WorkflowHandle, where: string): Promise<void> {
  await run.result().catch((error: unknown) => {
    throw new Error(
      `a run on ${where} alone did not end, so nothing was changed: does a worker of it run? Its log says why`,
      { cause: error },
    );
  });
}

/** Starts the watch to try workers, or takes the run that another command started. */
async function startWatch(
  client: Client,
  id: string,
  on: Pick<WorkflowStartOptions, 'versioningOverride'> = {},
): Promise<WorkflowHandle> {
  return await client.workflow.start(workflowNames.watch, {
    workflowId: `try-build/${id}`,
    workflowIdConflictPolicy: 'USE_EXISTING',
    taskQueue: taskQueues.events,
    args: [],
    workflowExecutionTimeout: serverWaits.buildTriedWithinMs,
    ...on,
  });
}

/** Starts the watch on a build. A worker's queue has it a moment after the worker began to poll. */
async function startOnBuild(
  client: Client,
  deploymentName: string,
  buildId: string,
): Promise<WorkflowHandle> {
  const refusedUntil = performance.now() + serverWaits.buildKnownWithinMs;
  for (;;) {
    try {
      return await startWatch(client, `${deploymentName}/${buildId}`, {
        versioningOverride: { pinnedTo: { deploymentName, buildId } },
      });
    } catch (error) {
      const cause = error instanceof ServiceError ? error.cause : undefined;
      if (!isGrpcServiceError(cause) || Number(cause.code) !== failedPrecondition) throw error;
      if (performance.now() > refusedUntil)
        throw new Error(`no worker of build ${buildId} has polled, so nothing was changed: start one first`, {
          cause: error,
        });
    }
    await delay(serverWaits.buildLookEveryMs);
  }
}
