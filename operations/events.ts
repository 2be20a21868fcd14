import type { Client } from '@temporalio/client';
import { defaultPayloadConverter } from '@temporalio/common';
import { dataConverterOf, withClient } from '../app/temporal/client.ts';
import type { TemporalPlace } from '../app/temporal/place.ts';
import {
  type DecodedEvent,
  type DeliveredEvent,
  decodeEvent,
  type EventGroup,
  type Replay,
} from '../contract/event.ts';
import { withoutByteOrderMark } from '../contract/json.ts';
import {
  type EventOutcome,
  type TracedKind,
  taskQueues,
  workflowIds,
  workflowNames,
} from '../contract/names.ts';
import { serverWaits } from '../contract/retry-policy.ts';
import { counted } from '../contract/words.ts';
import type { Database } from '../db/connection/connect.ts';
import { type EventFilter, findAllEvents, outcomesOf, readKept } from '../db/read/events.ts';
import { type EncodedEvent, encodeEvent, sizeOfNextGroup } from '../receiver/group.ts';

interface ReplayReport {
  /** Events that were recorded again. */
  readonly replayed: number;
  /** Their outcomes so far. Pending events are read again from the service, as after a delivery. */
  readonly outcomes: Partial<Record<EventOutcome, number>>;
  readonly refused: readonly { readonly id: string; readonly reason: string }[];
}

/** Whether all requested events were replayed, and none of them is dead again. */
export const wasReplayed = ({ outcomes, refused }: ReplayReport): boolean =>
  refused.length === 0 && (outcomes.dead ?? 0) === 0;

/** Describes a replay in lines: `4 events replayed: 4 are dead again`. */
export function describeReplay({ replayed, outcomes, refused }: ReplayReport): string[] {
  const counts = Object.entries(outcomes).map(
    ([outcome, count]) =>
      `${count} ${count === 1 ? 'is' : 'are'} ${outcome}${outcome === 'dead' ? ' again' : ''}`,
  );
  return [
    `${counted(replayed, 'event')} replayed${counts.length === 0 ? '' : `: ${counts.join(', ')}`}`,
    ...refused.map(({ id, reason }) => `refused ${id}: ${reason}`),
  ];
}

/** Number of events that are read with their payloads at a time. */
const atOnce = 500;

/** Starts applyEvents again for the signed bodies of kept events, group by group, so workers have to run. */
export async function replayEvents(options: {
  client: Client;
  db: Database;
  filter: EventFilter;
  replay: Replay;
  /** The replay's id in the log of operations. */
  operation: number;
  onProgress?: (replayed: number) => void;
}): Promise<ReplayReport> {
  const { client, db, replay, operation } = options;
  // Each requested id is reported, even if its event cannot be replayed.
  const unapplied = replay !== 'all' && options.filter.ids === undefined;
  // All are listed first, because a replay moves events to other places of the list.
  const ids = await findAllEvents(db, { ...options.filter, unapplied });
  const refused: { id: string; reason: string }[] = [];
  const outcomes: Partial<Record<EventOutcome, number>> = {};
  let replayed = 0;
  for (let from = 0; from < ids.length; from += atOnce) {
    const events = await readReplayable(db, ids.slice(from, from + atOnce), replay, refused);
    for (const group of groupsOf(events)) {
      await replayGroup(client, { events: group, replay }, operation);
      replayed += group.length;
      options.onProgress?.(replayed);
      const now = await outcomesOf(
        db,
        group.map(({ id }) => id),
      );
      for (const [outcome, count] of Object.entries(now) as [EventOutcome, number][]) {
        outcomes[outcome] = (outcomes[outcome] ?? 0) + count;
      }
    }
  }
  const absent = new Set(options.filter.ids);
  for (const id of ids) absent.delete(id);
  for (const id of absent) refused.push({ id, reason: 'it is not in the journal' });
  return { replayed, outcomes, refused };
}

/** Reads kept events as they were delivered; adds events that cannot be replayed to `refused`. */
async function readReplayable(
  db: Database,
  ids: readonly string[],
  replay: Replay,
  refused: { id: string; reason: string }[],
): Promise<DeliveredEvent[]> {
  const kept = await readKept(db, ids);
  return kept.flatMap(({ id, outcome, delivered }) => {
    const isDone = outcome === 'applied' && replay !== 'all';
    if (!isDone && delivered !== undefined) return [delivered];
    const reason = isDone
      ? 'it was already applied: --force applies it again'
      : 'its payload was dropped because of its age: backfill its company instead';
    refused.push({ id, reason });
    return [];
  });
}

/** Splits events into groups within the receiver's bounds. */
function groupsOf(events: readonly DeliveredEvent[]): DeliveredEvent[][] {
  const groups: DeliveredEvent[][] = [];
  let waiting: EncodedEvent[] = events.map(encodeEvent);
  while (waiting.length > 0) {
    const size = sizeOfNextGroup(waiting);
    groups.push(waiting.slice(0, size).map(({ event }) => event));
    waiting = waiting.slice(size);
  }
  return groups;
}

async function replayGroup(client: Client, group: EventGroup, operation: number): Promise<void> {
  const workflowId = workflowIds.replay(group.events[0]?.id ?? '', operation);
  await client.workflow.execute(workflowNames.applyEvents, {
    workflowId,
    taskQueue: taskQueues.events,
    args: [group],
  });
}

/** An event that was acknowledged, and that Temporal keeps until it is recorded. */
interface OpenEvent extends Pick<DeliveredEvent, 'id' | 'receivedAt'> {
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
