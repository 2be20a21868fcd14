import { createHash } from 'node:crypto';
import type { DeliveredEvent } from '../contract/event.ts';
import { limits } from '../contract/limits.ts';
import { workflowIds } from '../contract/names.ts';
import { withoutSecrets } from '../contract/without-secrets.ts';

/** An event and its size in bytes in the payload of a workflow start. */
export interface EncodedEvent {
  readonly event: DeliveredEvent;
  readonly bytes: number;
}

/**
 * Prepares a verified event for Temporal, without secrets. Its size is the size of Temporal's JSON, up to six
 * times the size of the body. Above `eventEncodedBytesMax` the body is sent as base64, a third longer than
 * its bytes, so that one event always fits a payload.
 */
export function encodeEvent(delivered: DeliveredEvent): EncodedEvent {
  if (delivered.body === undefined) return { event: delivered, bytes: encodedBytes(delivered) };
  const { body: signed, ...rest } = delivered;
  const body = withoutSecrets(signed);
  const event = { ...rest, body };
  const bytes = encodedBytes(event);
  if (bytes <= limits.eventEncodedBytesMax) return { event, bytes };
  const fitted = { ...rest, bodyBase64: Buffer.from(body, 'utf8').toString('base64') };
  return { event: fitted, bytes: encodedBytes(fitted) };
}

function encodedBytes(event: DeliveredEvent): number {
  return Buffer.byteLength(JSON.stringify(event), 'utf8');
}

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
