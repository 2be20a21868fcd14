import type { Client } from '@temporalio/client';
import type { DataConverter } from '@temporalio/common';
import type { WorkflowBundleOption } from '@temporalio/worker';
import { type Replayed, replayHistories } from '../app/temporal/replay-histories.ts';
import { limits } from '../contract/limits.ts';
import { workflowNames } from '../contract/names.ts';
import type { SchemaVersions } from '../contract/schema-versions.ts';
import type { MigrationPlan } from '../db/migrate/migration-plan.ts';

export interface UpgradeCheck {
  readonly go: boolean;
  readonly schema: SchemaVersions & {
    /** The oldest code that may write after the migration, as a number of migrations. */
    readonly floorAfter: number;
    readonly statements: number;
  };
  /** Whether workers of the version that migrated last may go on beside this one. */
  readonly besideOld: boolean;
  readonly replayed: Replayed;
  /** Groups of events that Temporal has and no worker has recorded yet. */
  readonly openGroups: number;
}

/**
 * Checks an upgrade while the old version runs: what a migration would do, and whether this code replays the
 * workflows that run now. Replacing Temporal loses what it holds: then no group may be open.
 */
export async function checkUpgrade(options: {
  readonly plan: MigrationPlan;
  readonly client: Client;
  readonly workflowBundle: WorkflowBundleOption;
  readonly dataConverter?: DataConverter;
  readonly replacesTemporal: boolean;
}): Promise<UpgradeCheck> {
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
    besideOld: floorAfter <= versions.applied,
    replayed,
    openGroups,
  };
}
