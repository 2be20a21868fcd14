import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { DeliveredEvent } from '../../contract/event.ts';
import { limits } from '../../contract/limits.ts';
import { encodeEvent, sizeOfNextGroup, workflowIdOfGroup } from '../../receiver/group.ts';
import { delivery } from '../support/events.ts';
import { anyCharacter } from '../support/text.ts';

/** Returns the number of bytes that Temporal's JSON converter makes of a value. */
const encodedBytes = (value: unknown) => Buffer.byteLength(JSON.stringify(value), 'utf8');

const event = (id: string, body: string, timestamp = 1_614_265_330): DeliveredEvent => ({
  id,
  timestamp,
  receivedAt: '2021-02-25T15:02:10.000Z',
  body,
});

type Several = [DeliveredEvent, ...DeliveredEvent[]];

/** Texts whose characters encode to up to six bytes each, from empty texts to texts above every limit. */
const body = fc
  .tuple(
    fc.oneof(
      fc.string({ unit: anyCharacter, minLength: 1, maxLength: 12 }),
      fc.constantFrom('"', '\\', '\u0001', '🔌', 'ü', 'x'),
    ),
    fc.oneof(
      { weight: 20, arbitrary: fc.integer({ min: 0, max: 2_000 }) },
      { weight: 1, arbitrary: fc.constantFrom(50_000, 200_000, limits.webhookBodyBytesMax) },
    ),
  )
  .map(([text, bytes]) => text.repeat(Math.floor(bytes / Buffer.byteLength(text))));

describe('grouping', () => {
  test('keeps the order, loses nothing and stays within both limits, for any events', () => {
    fc.assert(
      fc.property(fc.array(body, { maxLength: 60 }), (bodies) => {
        const waiting = bodies.map((text, n) => encodeEvent(event(`msg_${n}`, text)));
        const groups: (typeof waiting)[] = [];
        for (let rest = waiting; rest.length > 0; rest = rest.slice(groups.at(-1)?.length)) {
          groups.push(rest.slice(0, sizeOfNextGroup(rest)));
        }
        expect(groups.flat()).toEqual(waiting);
        for (const group of groups) {
          const bytes = encodedBytes({ events: group.map((member) => member.event) });
          expect(bytes).toBeLessThanOrEqual(
            group.length === 1 ? Math.max(limits.groupBytesMax, 1.5 * 1024 * 1024) : limits.groupBytesMax,
          );
          expect(group.length).toBeGreaterThan(0);
        }
      }),
      { numRuns: 200 },
    );
  });

  test('fills groups as far as the limits allow', () => {
    const sizes = fc.array(fc.integer({ min: 60, max: 3_000 }), { minLength: 1, maxLength: 700 });
    fc.assert(
      fc.property(sizes, (bytes) => {
        const size = sizeOfNextGroup(bytes.map((of) => ({ bytes: of })));
        const encoded = (count: number) =>
          '{"events":[]}'.length + bytes.slice(0, count).reduce((sum, of) => sum + of, 0) + count - 1;
        expect(size).toBeLessThanOrEqual(limits.groupEventsMax);
        expect(encoded(size)).toBeLessThanOrEqual(limits.groupBytesMax);
        if (size < bytes.length) {
          expect(size === limits.groupEventsMax || encoded(size + 1) > limits.groupBytesMax).toBe(true);
        }
      }),
    );
  });

  test('counts the envelope and the commas to the byte', () => {
    const sizes = [{ bytes: 100 }, { bytes: 100 }];
    const exact = Buffer.byteLength('{"events":[,]}') + 200;
    expect(sizeOfNextGroup(sizes, { groupEventsMax: 2, groupBytesMax: exact })).toBe(2);
    expect(sizeOfNextGroup(sizes, { groupEventsMax: 2, groupBytesMax: exact - 1 })).toBe(1);
  });

  test('measures exactly the bytes that Temporal carries', () => {
    const id = fc.stringMatching(/^[!-\-/-~]{1,200}$/);
    fc.assert(
      fc.property(id, body, (id, text) => {
        const encoded = encodeEvent(event(id, text));
        expect(encoded.bytes).toBe(encodedBytes(encoded.event));
        expect(encoded.bytes).toBeLessThanOrEqual(limits.eventEncodedBytesMax);
        const { body, bodyBase64 } = encoded.event;
        expect(bodyBase64 === undefined ? body : Buffer.from(bodyBase64, 'base64').toString()).toBe(text);
      }),
      { numRuns: 200 },
    );
  });

  test('encodes a body as base64 only above the limit of one event', () => {
    const overhead = encodedBytes(event('msg', ''));
    const fits = '\u0001'.repeat(Math.floor((limits.eventEncodedBytesMax - overhead) / 6));
    expect(encodeEvent(event('msg', fits)).event.body).toBe(fits);
    expect(encodeEvent(event('msg', `${fits}\u0001`)).event).not.toHaveProperty('body');
  });

  test('fits the largest body with the longest id into a payload', () => {
    const largest = event('"'.repeat(200), '\u0001'.repeat(limits.webhookBodyBytesMax));
    expect(encodeEvent(largest).bytes).toBeLessThanOrEqual(limits.eventEncodedBytesMax);
  });
});

describe('the workflow id of a group', () => {
  test('of one event is made of its id and timestamp, so that an exact replay has the same id', () => {
    expect(workflowIdOfGroup([event('msg_1', '{}')])).toBe('event/msg_1/1614265330');
    expect(workflowIdOfGroup([event('msg_1', 'other')])).toBe('event/msg_1/1614265330');
    expect(workflowIdOfGroup([event('msg_1', '{}', 1_614_265_331)])).toBe('event/msg_1/1614265331');
  });

  test('of several events differs if any event differs, even with the same first event and count', () => {
    const group: Several = [event('msg_1', '{}'), event('msg_2', '{}')];
    expect(workflowIdOfGroup(group)).toMatch(/^events\/msg_1\+1\/1614265330\/[\w-]{16}$/);
    const others: Several[] = [
      [event('msg_1', '{}'), event('msg_3', '{}')],
      [event('msg_1', '{}'), event('msg_2', '{}', 1_614_265_331)],
      [event('msg_1', '{}'), event('msg_2', '{}'), event('msg_3', '{}')],
    ];
    expect(new Set([group, ...others].map(workflowIdOfGroup)).size).toBe(4);
    expect(workflowIdOfGroup([...group])).toBe(workflowIdOfGroup(group));
  });

  test("fits into a column of Temporal's databases, which holds 255 characters", () => {
    const longest = event('x'.repeat(200), '{}', 9_999_999_999);
    const group = Array.from({ length: 500 }, () => longest) as Several;
    expect(workflowIdOfGroup(group).length).toBeLessThanOrEqual(255);
  });
});

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
