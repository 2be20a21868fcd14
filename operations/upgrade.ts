import type { Client } from '@temporalio/client';
import type { DataConverter } from '@temporalio/common';
import type { WorkflowBundleOption } from '@temporalio/worker';
import { replayHistories } from '../app/temporal/replay-histories.ts';
import { limits } from '../contract/limits.ts';
import { workflowNames } from '../contract/names.ts';
import type { MigrationPlan } from '../db/migrate/migration-plan.ts';

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
  const { count: openGroups } = await client.workflow.count(
    `ExecutionStatus = 'Running' and WorkflowType = '${workflowNames.applyEvents}'`,
  );
  return {
    go: replayed.failures.length === 0 && !(replacesTemporal && openGroups > 0),
    schema: { ...versions, floorAfter, statements: statements.length },
    /** Whether workers of the version that migrated last may keep running next to this version. */
    besideOld: floorAfter <= versions.applied,
    replayed,
    /** Groups of events that Temporal has and no worker has recorded yet. */
    openGroups,
  };
}
