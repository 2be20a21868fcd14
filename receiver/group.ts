import { createHash } from 'node:crypto';
import type { DeliveredEvent } from '../contract/delivery.ts';
import { limits } from '../contract/limits.ts';
import { workflowIds } from '../contract/names.ts';

/** `{"events":[]}` around the events of a group. */
const envelopeBytes = 13;

/** Counts the events of the next group, as many as fit both limits; at least one, which may be larger. */
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
 * The workflow id of a group, the same for every attempt. For several events it ends in a digest of them: a
 * repeated first event may begin a group with other members, for which "already started" would be wrong.
 */
export function workflowIdOfGroup(events: readonly [DeliveredEvent, ...DeliveredEvent[]]): string {
  const id = workflowIds.events(events[0].id, events.length, events[0].timestamp);
  if (events.length === 1) return id;
  const members = events.map((event) => `${event.id} ${event.timestamp}`).join('\n');
  return `${id}/${createHash('sha256').update(members).digest('base64url').slice(0, 16)}`;
}
