import { installRuntime } from '../../app/temporal/native.ts';
import { dataConverterOf, withClient } from '../../app/temporal/temporal.ts';
import { workflowBundle } from '../../app/temporal/workflow-bundle.ts';
import { planOf, requireAnswer } from '../../app/warehouse/prepare.ts';
import { counted } from '../../contract/words.ts';
import { checkUpgrade, type UpgradeCheck } from '../../operations/upgrade.ts';
import { withContext } from '../context.ts';
import { print, printJson, say } from '../print.ts';

interface UpgradeOptions {
  readonly temporal?: boolean;
  readonly json?: boolean;
}

/** `metersync upgrade check`: says whether this version may take over from the running one; 1 if not. */
export async function upgradeCheck({ temporal = false, json }: UpgradeOptions): Promise<void> {
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
      return await checkUpgrade({
        plan,
        client,
        workflowBundle: await workflowBundle(log),
        dataConverter: dataConverterOf(stack.temporal),
        replacesTemporal: temporal,
      });
    });
    if (json) printJson(check);
    else print(...describe(check, temporal));
    if (!check.go) process.exitCode = 1;
  });
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
