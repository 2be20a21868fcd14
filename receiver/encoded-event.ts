import type { DeliveredEvent } from '../contract/delivery.ts';
import { limits } from '../contract/limits.ts';
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
