import type { Client } from '@temporalio/client';
import { defaultPayloadConverter } from '@temporalio/common';
import type { TemporalPlace } from '../app/temporal/place.ts';
import { dataConverterOf, withClient } from '../app/temporal/temporal.ts';
import { type DecodedEvent, type DeliveredEvent, decodeEvent, type EventGroup } from '../contract/event.ts';
import { withoutByteOrderMark } from '../contract/json.ts';
import { type TracedKind, workflowNames } from '../contract/names.ts';
import { serverWaits } from '../contract/retry-policy.ts';

/** An event that was acknowledged, and that Temporal keeps until it is recorded. */
export interface OpenEvent extends Pick<DeliveredEvent, 'id' | 'receivedAt'> {
  readonly type: string;
  readonly workflowId: string;
}

/** Maximum number of groups that are searched, because many groups wait while Postgres is away. */
const groupsMax = 200;

/** Lists the events of a record that are not recorded yet, from Temporal only, oldest first. */
export async function openEventsOf(
  place: TemporalPlace,
  kind: TracedKind,
  recordId: string,
): Promise<readonly OpenEvent[]> {
  const [codec] = dataConverterOf(place).payloadCodecs ?? [];
  const found: OpenEvent[] = [];
  const query = `WorkflowType = '${workflowNames.applyEvents}' and ExecutionStatus = 'Running'`;
  const list = async (client: Client): Promise<void> => {
    let groups = 0;
    for await (const { workflowId, runId } of client.workflow.list({ query })) {
      const { history } = await client.workflowService.getWorkflowExecutionHistory({
        namespace: client.options.namespace,
        execution: { workflowId, runId },
        maximumPageSize: 1,
      });
      const started = history?.events?.[0]?.workflowExecutionStartedEventAttributes;
      const [payload] = (await codec?.decode(started?.input?.payloads ?? [])) ?? [];
      const group = payload && defaultPayloadConverter.fromPayload<EventGroup>(payload);
      for (const event of group?.events ?? []) {
        const decoded = read(event);
        if (decoded?.recordId !== recordId || decoded.kind !== (kind === 'meter' ? 'interval' : kind))
          continue;
        found.push({ id: event.id, receivedAt: event.receivedAt, type: decoded.type, workflowId });
      }
      groups += 1;
      if (groups === groupsMax) break;
    }
  };
  await withClient(place, list, serverWaits.secondAnswerMs);
  return found.toSorted((a, b) => (a.receivedAt < b.receivedAt ? -1 : 1));
}

/** Reads an event; undefined if it cannot be read, which the journal will explain. */
function read({ body, bodyBase64 = '' }: DeliveredEvent): DecodedEvent | undefined {
  try {
    return decodeEvent(
      JSON.parse(withoutByteOrderMark(body ?? Buffer.from(bodyBase64, 'base64').toString())),
    );
  } catch {
    return undefined;
  }
}
