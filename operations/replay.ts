import type { Client } from '@temporalio/client';
import type { DeliveredEvent, EventGroup, Replay } from '../contract/event.ts';
import { type EventOutcome, taskQueues, workflowIds, workflowNames } from '../contract/names.ts';
import { counted } from '../contract/words.ts';
import type { Database } from '../db/connection/connect.ts';
import type { EventFilter } from '../db/read/event-filter.ts';
import { outcomesOf } from '../db/read/events.ts';
import { findAllEvents } from '../db/read/found-events.ts';
import { readKept } from '../db/read/kept-events.ts';
import { type EncodedEvent, encodeEvent, sizeOfNextGroup } from '../receiver/group.ts';

export interface ReplayReport {
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
