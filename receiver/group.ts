import { createHash } from 'node:crypto';
import type { DeliveredEvent } from '../contract/delivery.ts';
import { limits } from '../contract/limits.ts';
import { workflowIds } from '../contract/names.ts';

/** `{"events":[]}` around the events of a group. */
const envelopeBytes = 13;

/**
 * Counts the waiting events that form the next group: the first events, as many as fit both limits. There is
 * at least one event, because an event larger than the limit of a group is sent by itself.
 */
export function sizeOfNextGroup(
  waiting: readonly { readonly bytes: number }[],
  { groupEventsMax, groupBytesMax }: Readonly<Record<'groupEventsMax' | 'groupBytesMax', number>> = limits,
): number {
  let bytes = envelopeBytes;
  let size = 0;
  for (const event of waiting) {
    // A comma precedes every event except the first.
    bytes += event.bytes + (size === 0 ? 0 : 1);
    if (size > 0 && (size >= groupEventsMax || bytes > groupBytesMax)) break;
    size += 1;
  }
  return size;
}

/**
 * The workflow id of a group, the same for every attempt to start it. The id of a group of several events
 * ends in a digest of its members. If its first event is delivered again, it may begin a group of the same
 * size with other members, for which "already started" would be wrong.
 */
export function workflowIdOfGroup(events: readonly [DeliveredEvent, ...DeliveredEvent[]]): string {
  const id = workflowIds.events(events[0].id, events.length, events[0].timestamp);
  if (events.length === 1) return id;
  const members = events.map((event) => `${event.id} ${event.timestamp}`).join('\n');
  return `${id}/${createHash('sha256').update(members).digest('base64url').slice(0, 16)}`;
}
