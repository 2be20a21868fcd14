import type { Client } from '@temporalio/client';
import type { TemporalPlace } from '../../app/temporal/place.ts';
import { withClient } from '../../app/temporal/temporal.ts';
import { codeOfReason, failureTypes } from '../../contract/failures.ts';
import { type Check, check, ok, type Verdict, warn } from './check.ts';

/** Running workflows that are searched for refused payloads. */
const runningMax = 200;
const lookAtOnce = 20;

/** Checks that Temporal answers, and that no workflow holds refused payloads. */
export async function checkTemporal(place: TemporalPlace | undefined): Promise<Check[]> {
  // The verdict already reports that there is no Temporal.
  if (place === undefined) return [];
  const checks: Check[] = [];
  const todo = 'Check TEMPORAL_ADDRESS and TEMPORAL_NAMESPACE, and that Temporal runs.';
  const temporal = await check('Temporal', todo, () =>
    withClient(place, async (client) => {
      checks.push(await check('payloads', todo, () => judgePayloads(client, place)));
      return ok(`answers; namespace ${client.options.namespace}`);
    }),
  );
  return [temporal, ...checks];
}

/** Judges whether payloads are encrypted, and lists workflows with refused payloads. */
async function judgePayloads(client: Client, { codecKeys = [], plaintext }: TemporalPlace): Promise<Verdict> {
  const [first] = codecKeys;
  if (first === undefined) {
    return ok('not encrypted: anyone who reaches Temporal can read and forge events (TEMPORAL_CODEC_KEYS)');
  }
  const refused = await refusedWorkflows(client);
  if (refused.length > 0) {
    const saw = `${refused.length} workflows are waiting because their payloads are refused: ${refused.slice(0, 3).join(', ')}`;
    return warn(saw, failureTypes.PAYLOAD_REFUSED.operator);
  }
  const under = `encrypted under the key "${first.id}"`;
  if (plaintext !== 'accepted')
    return ok(`${under}; other payloads are refused, and no workflow is waiting for that reason`);
  return warn(
    `${under}; unencrypted payloads are accepted, too, from anyone who reaches Temporal`,
    'Remove TEMPORAL_PLAINTEXT when no workflow is running that began before the keys were set.',
  );
}

async function refusedWorkflows(client: Client): Promise<string[]> {
  const running: { workflowId: string; runId: string }[] = [];
  for await (const execution of client.workflow.list({ query: `ExecutionStatus = 'Running'` })) {
    running.push(execution);
    if (running.length >= runningMax) break;
  }
  const refused: string[] = [];
  while (running.length > 0) {
    const batch = running.splice(0, lookAtOnce);
    const reasons = await Promise.all(batch.map((execution) => taskFailure(client, execution)));
    const isRefused = reasons.map((reason) => codeOfReason(reason) === 'PAYLOAD_REFUSED');
    refused.push(...batch.filter((_, at) => isRefused[at]).map(({ workflowId }) => workflowId));
  }
  return refused;
}

/**
 * Returns the last failure in the history of a workflow whose task fails again and again; empty for others.
 */
async function taskFailure(
  client: Client,
  execution: { workflowId: string; runId: string },
): Promise<string> {
  const { namespace } = client.options;
  const { workflowId, runId } = execution;
  const request = { namespace, execution: { workflowId, runId } };
  const { pendingWorkflowTask } = await client.workflowService.describeWorkflowExecution(request);
  if ((pendingWorkflowTask?.attempt ?? 0) < 2) return '';
  const { history } = await client.workflowService.getWorkflowExecutionHistoryReverse({
    ...request,
    maximumPageSize: 5,
  });
  const failed = history?.events?.find((event) => event.workflowTaskFailedEventAttributes);
  return failed?.workflowTaskFailedEventAttributes?.failure?.message ?? '';
}
