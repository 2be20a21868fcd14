import type { Client } from '@temporalio/client';
import { connectClient } from '../../app/temporal.ts';
import { openWarehouse } from '../../app/warehouse.ts';
import { promote, readBuilds, rollBack } from '../../app/worker-versions.ts';
import type { OperationAction } from '../../contract/names.ts';
import { recordedWherePossible } from '../../operations/recorded.ts';
import { asOperation, sayUnnoted } from '../as-operation.ts';
import { type Context, openContext } from '../context.ts';
import { UsageError } from '../errors.ts';
import { print, printJson } from '../print.ts';
import { table } from '../terminal.ts';

/** `metersync workers list`: prints the builds of the workers that Temporal knows. */
export async function workersList({ json }: { json?: boolean }): Promise<void> {
  await withDeployment(async ({ client, deploymentName }) => {
    const { builds, current, ramping, previous } = await readBuilds(client, deploymentName);
    if (json) {
      printJson({ deploymentName, current, ramping, previous, builds });
      return;
    }
    print(
      ...table(
        ['build', 'state', 'polls'],
        builds.map(({ buildId, state, polls }) => [
          buildId,
          ramping?.buildId === buildId ? `ramping, ${ramping.percent} %` : state,
          polls ? 'yes' : 'no',
        ]),
      ),
    );
    const idle = builds.filter(({ polls, state }) => polls && state === 'inactive');
    for (const { buildId } of idle)
      print(`${buildId} polls and gets no work: metersync workers promote ${buildId}`);
  });
}

/** `metersync workers promote`: gives all work or a part of it to a build. */
export async function workersPromote(buildId: string, { ramp }: { ramp?: number }): Promise<void> {
  await withDeployment(async (deployment) => {
    const { client, deploymentName } = deployment;
    const said =
      ramp === undefined ? `${buildId} is current.` : `${buildId} gets ${ramp} % of the workflows.`;
    const target = { build: buildId, ramp: ramp === undefined ? undefined : String(ramp) };
    await noted(deployment, 'workers promote', target, async () => {
      await promote(client, deploymentName, buildId, { percent: ramp });
      return said;
    });
  });
}

/** `metersync workers rollback`: takes the last promotion back. */
export async function workersRollback(): Promise<void> {
  await withDeployment(async (deployment) => {
    const { client, deploymentName } = deployment;
    await noted(deployment, 'workers rollback', {}, async () => {
      const build = await rollBack(client, deploymentName);
      return build === null ? 'Workers without a build have the work.' : `${build} has the work.`;
    });
  });
}

interface WorkerDeployment {
  readonly context: Context;
  readonly client: Client;
  readonly deploymentName: string;
}

async function withDeployment(work: (deployment: WorkerDeployment) => Promise<void>): Promise<void> {
  const context = await openContext({ temporal: true, service: false, quiet: true, existing: true });
  try {
    const deploymentName = context.settings.workerVersion?.deploymentName;
    if (deploymentName === undefined)
      throw new UsageError(
        'set TEMPORAL_DEPLOYMENT_NAME and TEMPORAL_WORKER_BUILD_ID, here and for the workers: without them Temporal knows no builds',
      );
    const { client, close } = await connectClient(context.stack.temporal);
    try {
      await work({ context, client, deploymentName });
    } finally {
      await close();
    }
  } finally {
    await context.stop();
  }
}

/** Does it, notes it in the log of operations if the warehouse is there, and prints what it says. */
async function noted(
  { context: { settings, stack, log } }: WorkerDeployment,
  action: OperationAction,
  target: Parameters<typeof asOperation>[2],
  work: () => Promise<string>,
): Promise<void> {
  const warehouse = openWarehouse(settings, stack.databaseUrl, log, 1);
  try {
    const operation = asOperation(settings, action, target);
    print(await recordedWherePossible(warehouse.db, operation, work, (said) => said, sayUnnoted));
  } finally {
    await warehouse.close();
  }
}
