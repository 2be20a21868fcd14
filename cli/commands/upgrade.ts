import type { Client } from '@temporalio/client';
import { planOf, requireAnswer } from '../../app/schema.ts';
import { dataConverterOf, withClient } from '../../app/temporal/client.ts';
import { installRuntime } from '../../app/temporal/native.ts';
import { replayHistories } from '../../app/temporal/replay-histories.ts';
import { workflowBundle } from '../../app/temporal/workflow-bundle.ts';
import { limits } from '../../contract/limits.ts';
import { workflowNames } from '../../contract/names.ts';
import { counted } from '../../contract/words.ts';
import type { MigrationPlan } from '../../db/migrate/migrations.ts';
import { withContext } from '../context.ts';
import { answer, say } from '../output.ts';

/** `metersync upgrade check`: says whether this version may take over from the running one; 1 if not. */
export async function upgradeCheck(options: { temporal?: boolean; json?: boolean }): Promise<void> {
  const { temporal: replacesTemporal = false } = options;
  const need = { temporal: 'if running', service: false, quiet: true, existing: true } as const;
  await withContext(need, async ({ settings, stack, log }) => {
    if (!stack.hasTemporal)
      throw new Error(
        'no Temporal is running here: set TEMPORAL_ADDRESS to the Temporal of the running deployment',
      );
    await requireAnswer(settings, stack.databaseUrl, log);
    installRuntime(log);
    const plan = await planOf(settings, stack.databaseUrl, log);
    const check = await withClient(stack.temporal, async (client) => {
      say('Replaying the running workflows…');
      return await checkUpgrade(plan, client, {
        workflowBundle: await workflowBundle(log),
        dataConverter: dataConverterOf(stack.temporal),
        replacesTemporal,
      });
    });
    answer(options, check, () => describe(check, replacesTemporal));
    if (!check.go) process.exitCode = 1;
  });
}

type UpgradeCheck = Awaited<ReturnType<typeof checkUpgrade>>;

const running = `ExecutionStatus = 'Running'`;
const groups = `WorkflowType = '${workflowNames.applyEvents}'`;

/** Checks an upgrade while the old version runs. If Temporal is replaced, no group may be open. */
async function checkUpgrade(
  { versions, floorAfter, statements }: MigrationPlan,
  client: Client,
  {
    replacesTemporal,
    ...code
  }: Pick<ReplayOptions, 'workflowBundle' | 'dataConverter'> & { readonly replacesTemporal: boolean },
) {
  const most = limits.historiesReplayed;
  const replayed = await replayHistories(client, { ...code, which: 'running', most });
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

type ReplayOptions = Parameters<typeof replayHistories>[1];

/** Counts the running workflows of each type, except groups of events, of which there may be very many. */
async function runningTypes(client: Client): Promise<Readonly<Record<string, number>>> {
  const types: Record<string, number> = {};
  const query = `${running} and WorkflowType != '${workflowNames.applyEvents}'`;
  for await (const { type } of client.workflow.list({ query })) types[type] = (types[type] ?? 0) + 1;
  return types;
}

function describe(check: UpgradeCheck, replacesTemporal: boolean): string[] {
  const { go, replayed, running, openGroups } = check;
  const types = Object.entries(running).map(([type, count]) => `${count} ${type}`);
  return [
    go ? 'Go: this version can take over.' : 'No: this version cannot take over now.',
    describeSchema(check),
    `${counted(replayed.histories, 'running workflow')} replayed, ${counted(replayed.failures.length, 'failure')}.`,
    ...(types.length === 0 ? [] : [`  Running: ${types.sort().join(', ')}.`]),
    ...replayed.failures.map(({ workflowId, why }) => `  ${workflowId}: ${why}`),
    ...(replayed.failures.length === 0
      ? []
      : ['  Let these workflows end on the old version, or change the workflow code behind patched().']),
    `${counted(openGroups, 'group')} of events not yet recorded.`,
    ...(replacesTemporal && openGroups > 0
      ? [
          '  Only Temporal has these events: stop the receiver, wait until the worker has recorded them, and check again.',
        ]
      : []),
  ];
}

function describeSchema({ schema: { known, applied, statements }, besideOld }: UpgradeCheck): string {
  if (known === applied) return 'No migration to run.';
  const migrations = `${counted(known - applied, 'migration')} to run, ${counted(statements, 'statement')}`;
  return besideOld
    ? `${migrations}: workers of the old version may keep running meanwhile. metersync migrate --plan shows them.`
    : `${migrations}: stop the workers of the old version first. metersync migrate --plan shows them.`;
}
