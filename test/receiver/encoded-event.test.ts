import { expect, test } from 'vitest';
import { limits } from '../../contract/limits.ts';
import { encodeEvent } from '../../receiver/encoded-event.ts';
import { delivery } from '../support/events.ts';

test('an event goes to Temporal without secrets, and is measured so', () => {
  const { event, bytes } = encodeEvent(delivery('{"a":1,"old":{"Password":"hush"},"token":"hush"}'));
  expect(event.body).toBe('{"a":1,"old":{}}');
  expect(bytes).toBe(Buffer.byteLength(JSON.stringify(event)));
});

test('one that goes as base64 has none either', () => {
  const note = '\0'.repeat(limits.eventEncodedBytesMax / 6);
  const { event } = encodeEvent(delivery(`{"credentials":"hush","note":"${note}"}`));
  expect(event.body).toBeUndefined();
  expect(Buffer.from(event.bodyBase64 ?? '', 'base64').toString()).toBe(`{"note":"${note}"}`);
});

test('one without secrets stays byte for byte', () => {
  const body = ' {"status":"PASSWORD_INCORRECT", "protectedChanges":["password"],\n"usage":1.10}';
  expect(encodeEvent(delivery(body)).event.body).toBe(body);
});
