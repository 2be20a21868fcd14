import { expect, test } from 'vitest';
import { limits } from '../../contract/limits.ts';
import { encodeEvent } from '../../receiver/group.ts';
import { delivery } from '../support/events.ts';

test('an event is encoded and measured without its secrets', () => {
  const { event, bytes } = encodeEvent(delivery('{"a":1,"old":{"Password":"hush"},"token":"hush"}'));
  expect(event.body).toBe('{"a":1,"old":{}}');
  expect(bytes).toBe(Buffer.byteLength(JSON.stringify(event)));
});

test('an event that is encoded as base64 has no secrets either', () => {
  const note = '\0'.repeat(limits.eventEncodedBytesMax / 6);
  const { event } = encodeEvent(delivery(`{"credentials":"hush","note":"${note}"}`));
  expect(event.body).toBeUndefined();
  expect(Buffer.from(event.bodyBase64 ?? '', 'base64').toString()).toBe(`{"note":"${note}"}`);
});

test('an event without secrets stays the same byte for byte', () => {
  const body = ' {"status":"PASSWORD_INCORRECT", "protectedChanges":["password"],\n"usage":1.10}';
  expect(encodeEvent(delivery(body)).event.body).toBe(body);
});
