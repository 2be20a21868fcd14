import type { DeliveredEvent } from '../contract/delivery.ts';
import { limits } from '../contract/limits.ts';

/** An event and the bytes that it takes in the payload of a workflow start. */
export interface EncodedEvent {
  readonly event: DeliveredEvent;
  readonly bytes: number;
}

/**
 * Measures an event as Temporal's JSON converter will write it, which can be six times its body. Past
 * `eventEncodedBytesMax` its body goes as base64 instead, a third longer than the bytes whatever they are, so
 * that one event always fits a payload.
 */
export function encodeEvent(event: DeliveredEvent): EncodedEvent {
  const bytes = encodedBytes(event);
  if (bytes <= limits.eventEncodedBytesMax || event.body === undefined) return { event, bytes };
  const { body, ...rest } = event;
  const fitted = { ...rest, bodyBase64: Buffer.from(body, 'utf8').toString('base64') };
  return { event: fitted, bytes: encodedBytes(fitted) };
}

function encodedBytes(event: DeliveredEvent): number {
  return Buffer.byteLength(JSON.stringify(event), 'utf8');
}
