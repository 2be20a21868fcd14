import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import { type DecodedEvent, decodeEvent, eventTypes } from '../../contract/event.ts';
import { Failure } from '../../contract/failures.ts';
import { company, connectionEvent, documentEvent, intervalsEvent, site } from '../support/events.ts';

const id = '0b7c1f5e-2d7a-4b7e-9c61-0a1b2c3d4e5f';
const at = '2026-02-03T04:05:06.123456';
const connection = (type: 'created' | 'updated' | 'validated') =>
  connectionEvent(type, id, at, 'CONNECTED', 'PENDING');
const created = connection('created');
const document = (more: object = {}, type: 'created' | 'updated' | 'deleted' = 'created') =>
  documentEvent(type, id, at, more);
const intervals = (more: object = {}) => ({
  ...intervalsEvent('m-1', '2026-01-01', '2026-01-02', 96),
  ...more,
});
/** The payload without one of its fields. */
const without = (payload: object, field: string) =>
  Object.fromEntries(Object.entries(payload).filter(([name]) => name !== field));
const hostile = (fields: string): object =>
  JSON.parse(`{"__proto__":{"eventType":"document.deleted.v2","polluted":true},${fields}}`);

const ofRecord = (type: string, more: Partial<DecodedEvent> = {}): DecodedEvent => ({
  ...{ type, kind: 'document', deletes: false, recordId: id, companyId: company.id, occurredAt: at, ...more },
});
const bare = { recordId: null, companyId: null, occurredAt: null };
const isDocument = ofRecord('document.created.v2');
const isConnection = ofRecord('connection.created.v2', { kind: 'connection' });
const isIntervals = ofRecord('intervals.synced', { ...bare, kind: 'interval', recordId: 'm-1' });
const ignored = (type: string) => ofRecord(type, { ...bare, kind: 'ignored' });

/** What becomes of each payload: its decoded form, or how the message of its failure begins. */
const decoded: Readonly<Record<string, readonly [payload: unknown, DecodedEvent | string]>> = {
  // Every event type of the service (service.md 6.2).
  'connection.created.v2': [created, isConnection],
  'connection.updated.v2': [connection('updated'), { ...isConnection, type: 'connection.updated.v2' }],
  'connection.validated.v2': [connection('validated'), { ...isConnection, type: 'connection.validated.v2' }],
  'document.created.v2': [document(), isDocument],
  'document.updated.v2': [document({}, 'updated'), ofRecord('document.updated.v2')],
  'document.deleted.v2': [document({}, 'deleted'), ofRecord('document.deleted.v2', { deletes: true })],
  'intervals.synced': [intervals(), isIntervals],

  // Without eventType, an event is recognized by its shape (service.md 2.4, 2.6), unless it has an eventType.
  'a connection without datasource': [without(created, 'datasource'), isConnection],
  'a connection without sites': [without(created, 'sitesRelations'), isConnection],
  'a connection without status': [without(created, 'status'), isConnection],
  'a connection whose status is null': [{ ...created, status: null }, isConnection],
  'a connection with a type that is not a text': [{ ...created, eventType: 7 }, isConnection],
  'a connection with the type of another event': [
    { ...created, eventType: 'connection.updated.v2' },
    { ...isConnection, type: 'connection.updated.v2' },
  ],
  'readings with their type': [intervals({ eventType: 'intervals.synced' }), isIntervals],
  'a change of a connection': [{ ...created, old: { status: 'PENDING' } }, 'it has no eventType'],
  'a meter without a count': [{ meterId: 'm-1' }, 'it has no eventType'],
  'a count without a meter': [{ intervalCount: 3 }, 'it has no eventType'],
  // Created, updated and deleted look the same.
  'a document without its type': [without(document(), 'eventType'), 'it has no eventType'],
  'a record with a company': [{ id, company, site }, 'it has no eventType'],
  'an empty object': [{}, 'it has no eventType'],
  'an empty eventType': [{ ...document(), eventType: '' }, 'it has no eventType'],
  'an eventType that is an object': [{ eventType: { toString: 'x' } }, 'it has no eventType'],
  'its type in another field': [
    { ...without(document(), 'eventType'), type: 'document.created.v2' },
    'it has no eventType',
  ],

  // An unknown type is ignored, and never refused.
  'a type of a later version': [
    { ...document(), eventType: 'document.created.v3' },
    ignored('document.created.v3'),
  ],
  'a type in capitals': [{ ...document(), eventType: 'Document.Created.v2' }, ignored('Document.Created.v2')],
  'a type that prototypes know': [{ ...document(), eventType: 'constructor' }, ignored('constructor')],
  'a type that is a prototype': [{ ...document(), eventType: '__proto__' }, ignored('__proto__')],

  // A known type needs its fields. The failure names all that are wrong.
  'a connection without id': [without(created, 'id'), 'connection.created.v2: id is missing'],
  'a document without id': [without(document(), 'id'), 'document.created.v2: id is missing'],
  'readings without start': [without(intervals(), 'start'), 'intervals.synced: start is missing'],
  'readings without a meter': [
    without(intervals({ eventType: 'intervals.synced' }), 'meterId'),
    'intervals.synced: meterId is missing',
  ],
  'readings without bounds': [
    { eventType: 'intervals.synced', meterId: 'm-1' },
    'intervals.synced: start is missing; end is missing',
  ],
  'an id that is not a UUID': [document({ id: 'document-7' }), 'document.created.v2: id is not a UUID'],
  'an id that is a number': [document({ id: 7 }), 'document.created.v2: id cannot be read'],
  'an id that is null': [document({ id: null }), 'document.created.v2: id cannot be read'],
  'an empty meter': [intervals({ meterId: '' }), 'intervals.synced: meterId cannot be read'],
  'a meter that is null': [intervals({ meterId: null }), 'intervals.synced: meterId cannot be read'],
  'a start that is not a time': [intervals({ start: 'monday' }), 'intervals.synced: start '],
  'an end within a second': [intervals({ end: 1_770_000_000.5 }), 'intervals.synced: end '],
  null: [null, 'the payload is not a JSON object'],
  'an array': [[document()], 'the payload is not a JSON object'],
  'a text': ['document.created.v2', 'the payload is not a JSON object'],
  nothing: [undefined, 'the payload is not a JSON object'],

  // What the service's document leaves open.
  'no company': [without(document(), 'company'), { ...isDocument, companyId: null }],
  'a company that is null': [document({ company: null }), { ...isDocument, companyId: null }],
  'a company that is a name': [document({ company: 'Acme' }), { ...isDocument, companyId: null }],
  'a company without an id': [document({ company: { name: 'Acme' } }), { ...isDocument, companyId: null }],
  'a company that is its id': [document({ company: company.id }), isDocument],
  'ids in capitals': [
    document({ id: id.toUpperCase(), company: { ...company, id: company.id.toUpperCase() } }),
    isDocument,
  ],
  'no time': [without(document(), 'updated'), { ...isDocument, occurredAt: null }],
  'a time that is null': [document({ updated: null }), { ...isDocument, occurredAt: null }],
  'a time that is a number': [document({ updated: 1_770_000_000 }), { ...isDocument, occurredAt: null }],
  'a time that is a word': [document({ updated: 'yesterday' }), { ...isDocument, occurredAt: null }],
  ...Object.fromEntries(
    [`${at}789+02:00`, '2026-02-03T04:05:06Z', '2026-02-03 04:05', '2026-02-03'].map((updated) => [
      `the time ${updated}`,
      [document({ updated }), { ...isDocument, occurredAt: updated }] as const,
    ]),
  ),
  ...Object.fromEntries(
    ['2026-01-01', '2026-01-01T00:00:00Z', '1770000000', 1_770_000_000].map((bound) => [
      `the bound ${JSON.stringify(bound)}`,
      [intervals({ start: bound, end: bound }), isIntervals] as const,
    ]),
  ),
  'a meter that is a number': [intervals({ meterId: 4711 }), { ...isIntervals, recordId: '4711' }],
  'unknown fields': [document({ site: null, created: null, tariff: { id: randomUUID() } }), isDocument],

  // Keys of prototypes create no type, and fill no missing field.
  'a prototype with a type': [hostile('"hello":1'), 'it has no eventType'],
  'a company whose prototype has an id': [
    hostile(
      `"eventType":"document.created.v2","id":"${id}","updated":"${at}","company":{"__proto__":{"id":"${id}"}}`,
    ),
    { ...isDocument, companyId: null },
  ],
  'a constructor': [document({ constructor: { prototype: { polluted: true } } }), isDocument],
};

test.each(Object.entries(decoded))('an event with %s', (_name, [payload, expected]) => {
  const decode = () => decodeEvent(payload);
  if (typeof expected !== 'string') expect(decode()).toEqual(expected);
  else {
    expect(decode).toThrow(Failure);
    expect(decode).toThrow(expect.objectContaining({ code: 'EVENT_UNREADABLE', action: 'dead' }));
    expect(decode).toThrow(expected);
  }
  expect({}).not.toHaveProperty('polluted');
});

test('the cases have every event type of the service', () => {
  expect(Object.keys(decoded)).toEqual(expect.arrayContaining(eventTypes));
});
