import type { Client } from '@temporalio/client';
import type { DataConverter } from '@temporalio/common';
import type { WorkflowBundleOption } from '@temporalio/worker';
import { replayHistories } from '../app/temporal/replay-histories.ts';
import { limits } from '../contract/limits.ts';
import { workflowNames } from '../contract/names.ts';
import type { MigrationPlan } from '../db/migrate/migration-plan.ts';

const running = `ExecutionStatus = 'Running'`;

/** Counts the running workflows of each type, except groups of events, of which there may be very many. */
async function runningTypes(client: Client): Promise<Readonly<Record<string, number>>> {
  const types: Record<string, number> = {};
  const listed = client.workflow.list({
    query: `${running} and WorkflowType != '${workflowNames.applyEvents}'`,
  });
  for await (const { type } of listed) types[type] = (types[type] ?? 0) + 1;
  return types;
}

export type UpgradeCheck = Awaited<ReturnType<typeof checkUpgrade>>;

/** Checks an upgrade while the old version runs. If Temporal is replaced, no group may be open. */
export async function checkUpgrade(options: {
  readonly plan: MigrationPlan;
  readonly client: Client;
  readonly workflowBundle: WorkflowBundleOption;
  readonly dataConverter?: DataConverter;
  readonly replacesTemporal: boolean;
}) {
  const { plan, client, replacesTemporal } = options;
  const { versions, floorAfter, statements } = plan;
  const replayed = await replayHistories(client, {
    ...options,
    which: 'running',
    most: limits.historiesReplayed,
  });
  const groups = `WorkflowType = '${workflowNames.applyEvents}'`;
  const { count: openGroups } = await client.workflow.count(`${running} and ${groups}`);
  return {
    go: replayed.failures.length === 0 && !(replacesTemporal && openGroups > 0),
    schema: { ...versions, floorAfter, statements: statements.length },
    /** Whether workers of the version that migrated last may keep running next to this version. */
    besideOld: floorAfter <= versions.applied,
    replayed,
    running: await runningTypes(client),
    /** Groups of events that Temporal has and no worker has recorded yet. */
    openGroups,
  };
}
