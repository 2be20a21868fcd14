import { randomUUID } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { type DecodedEvent, decodeEvent, eventTypes, typeOfEvent } from '../../contract/event.ts';
import { Failure } from '../../contract/failures.ts';
import { company, connectionEvent, documentEvent, intervalsEvent, site } from '../support/events.ts';

const id = '0b7c1f5e-2d7a-4b7e-9c61-0a1b2c3d4e5f';
const at = '2026-02-03T04:05:06.123456';
const connection = (type: 'created' | 'updated' | 'validated') =>
  connectionEvent(type, id, at, 'CONNECTED', 'PENDING');
const document = (type: 'created' | 'updated' | 'deleted', more: object = {}) =>
  documentEvent(type, id, at, more);
const intervals = (more: object = {}) => ({
  ...intervalsEvent('m-1', '2026-01-01', '2026-01-02', 96),
  ...more,
});
/** The payload without one of its fields. */
const without = (payload: object, field: string) =>
  Object.fromEntries(Object.entries(payload).filter(([name]) => name !== field));

const ofRecord = (type: string, kind: DecodedEvent['kind']): DecodedEvent => ({
  type,
  kind,
  deletes: type === 'document.deleted.v2',
  recordId: id,
  companyId: company.id,
  occurredAt: at,
});
const ignored = (type: string): DecodedEvent => ({
  type,
  kind: 'ignored',
  deletes: false,
  recordId: null,
  companyId: null,
  occurredAt: null,
});

/** Returns the failure of decoding. */
function failureOf(payload: unknown): Failure {
  try {
    decodeEvent(payload);
  } catch (error) {
    if (error instanceof Failure) return error;
    throw error;
  }
  throw new Error('it was decoded');
}

describe('every event type of the service (service.md 6.2) is decoded', () => {
  const payloads = {
    'connection.created.v2': [connection('created'), ofRecord('connection.created.v2', 'connection')],
    'connection.updated.v2': [connection('updated'), ofRecord('connection.updated.v2', 'connection')],
    'connection.validated.v2': [connection('validated'), ofRecord('connection.validated.v2', 'connection')],
    'document.created.v2': [document('created'), ofRecord('document.created.v2', 'document')],
    'document.updated.v2': [document('updated'), ofRecord('document.updated.v2', 'document')],
    'document.deleted.v2': [document('deleted'), ofRecord('document.deleted.v2', 'document')],
    'intervals.synced': [
      intervals(),
      { ...ignored('intervals.synced'), kind: 'interval' as const, recordId: 'm-1' },
    ],
  } as const satisfies Record<(typeof eventTypes)[number], readonly [object, DecodedEvent]>;

  test.each(eventTypes)('%s', (type) => {
    const [payload, decoded] = payloads[type];
    expect(decodeEvent(payload)).toEqual(decoded);
  });
});

describe('an event without eventType is recognized by its shape (service.md 2.4, 2.6)', () => {
  const created = connection('created');

  test('if it is connection.created.v2, by any field that only connections have', () => {
    expect(created).not.toHaveProperty('eventType');
    expect(typeOfEvent(created)).toBe('connection.created.v2');
    for (const field of ['datasource', 'sitesRelations', 'status']) {
      expect(typeOfEvent(without(created, field)), `without ${field}`).toBe('connection.created.v2');
      expect(typeOfEvent({ ...created, [field]: null }), `${field} null`).toBe('connection.created.v2');
    }
  });

  test('as a change of unknown type, and not as a creation, if a connection has `old`', () => {
    expect(typeOfEvent({ ...created, old: { status: 'PENDING' } })).toBeUndefined();
  });

  test('if it is intervals.synced, by its meter and its count, without any other field', () => {
    expect(typeOfEvent(intervals())).toBe('intervals.synced');
    expect(typeOfEvent({ meterId: 'm-1', intervalCount: 0 })).toBe('intervals.synced');
    expect(typeOfEvent({ meterId: 'm-1' })).toBeUndefined();
    expect(typeOfEvent({ intervalCount: 3 })).toBeUndefined();
  });

  test('but not if it is about a document, because created, updated and deleted look the same', () => {
    expect(typeOfEvent(without(document('created'), 'eventType'))).toBeUndefined();
    expect(typeOfEvent({ id, company, site })).toBeUndefined();
  });

  test('unless it has an eventType, which overrides the shape', () => {
    expect(typeOfEvent({ ...created, eventType: 'connection.updated.v2' })).toBe('connection.updated.v2');
    expect(typeOfEvent({ ...intervals(), eventType: 'intervals.synced' })).toBe('intervals.synced');
    expect(typeOfEvent({ ...created, eventType: 7 }), 'not a text').toBe('connection.created.v2');
  });
});

describe('an unknown event is ignored, and never refused', () => {
  test.each([
    ['a type of a later version', { ...document('created'), eventType: 'document.created.v3' }],
    ['a known type in other letters', { ...document('created'), eventType: 'Document.Created.v2' }],
    ['a type that prototypes know', { ...document('created'), eventType: 'constructor' }],
    ['a type that is a prototype', { ...document('created'), eventType: '__proto__' }],
  ])('%s', (_, payload) => {
    expect(decodeEvent(payload)).toEqual(ignored(payload.eventType));
  });
});

describe('an event whose type is in no field is EVENT_UNREADABLE', () => {
  test.each([
    ['an empty object', {}],
    ['an empty eventType', { ...document('created'), eventType: '' }],
    ['an eventType that is not a text', { eventType: { toString: 'document.created.v2' } }],
    [
      'the type in another field',
      { ...without(document('created'), 'eventType'), type: 'document.created.v2' },
    ],
    ['fields of none of the resources', { hello: 'world' }],
  ])('%s', (_, payload) => {
    expect(failureOf(payload)).toMatchObject({
      code: 'EVENT_UNREADABLE',
      message: 'it has no eventType, and not the fields of a type that has none',
    });
  });
});

describe('a known type without a required field is EVENT_UNREADABLE, and the error names the field', () => {
  const records = ['id'] as const;
  const intervalFields = ['start', 'end'] as const;
  test.each([
    ...records.map(
      (field) => ['connection.created.v2', field, without(connection('created'), field)] as const,
    ),
    ...records.map(
      (field) => ['connection.updated.v2', field, without(connection('updated'), field)] as const,
    ),
    ...records.map((field) => ['document.created.v2', field, without(document('created'), field)] as const),
    ...records.map((field) => ['document.deleted.v2', field, without(document('deleted'), field)] as const),
    ...intervalFields.map((field) => ['intervals.synced', field, without(intervals(), field)] as const),
    [
      'intervals.synced',
      'meterId',
      without({ ...intervals(), eventType: 'intervals.synced' }, 'meterId'),
    ] as const,
  ])('%s without %s', (type, field, payload) => {
    const failure = failureOf(payload);
    expect(failure).toMatchObject({ code: 'EVENT_UNREADABLE', action: 'dead' });
    expect(failure.message).toMatch(new RegExp(`^${type.replaceAll('.', '\\.')}: ${field} is missing$`));
  });

  test.each([
    ['id', 'not a UUID', document('created', { id: 'document-7' })],
    ['id', 'a number', document('created', { id: 7 })],
    ['id', 'null', document('created', { id: null })],
    ['meterId', 'empty', intervals({ meterId: '' })],
    ['meterId', 'null', intervals({ meterId: null })],
    ['start', 'no time', intervals({ start: 'monday' })],
    ['end', 'a fraction of a second', intervals({ end: 1_770_000_000.5 })],
  ])('%s is %s', (field, _, payload) => {
    const failure = failureOf(payload);
    expect(failure.code).toBe('EVENT_UNREADABLE');
    expect(failure.message).toMatch(new RegExp(`[:;] ${field}[. ]`));
  });

  test('names every wrong field in the error', () => {
    const { message } = failureOf({ eventType: 'intervals.synced', meterId: 'm-1' });
    for (const field of intervalFields) expect(message).toContain(`${field} is missing`);
  });

  test.each([
    ['null', null],
    ['an array', [document('created')]],
    ['a text', 'document.created.v2'],
    ['a number', 7],
    ['nothing', undefined],
  ])('does not accept a payload that is %s as an event', (_, payload) => {
    expect(failureOf(payload)).toMatchObject({
      code: 'EVENT_UNREADABLE',
      message: 'the payload is not a JSON object',
    });
  });
});

describe("forms that the service's document leaves open", () => {
  test('an event needs no company', () => {
    const withoutCompany = { ...decodeEvent(document('created')), companyId: null };
    expect(decodeEvent(without(document('created'), 'company'))).toEqual(withoutCompany);
    expect(decodeEvent(document('created', { company: null }))).toEqual(withoutCompany);
  });

  test('an event needs no time', () => {
    const withoutTime = { ...decodeEvent(document('created')), occurredAt: null };
    expect(decodeEvent(without(document('created'), 'updated'))).toEqual(withoutTime);
  });

  test.each([
    ['companyId', { company: 'Acme' }],
    ['companyId', { company: { name: 'Acme' } }],
    ['occurredAt', { updated: null }],
    ['occurredAt', { updated: 1_770_000_000 }],
    ['occurredAt', { updated: 'yesterday' }],
  ])('%s is not read from %o', (field, more) => {
    expect(decodeEvent(document('created', more))).toEqual({
      ...decodeEvent(document('created')),
      [field]: null,
    });
  });

  test('a company is an object or its id', () => {
    const plain = decodeEvent(document('created', { company: company.id }));
    expect(plain).toEqual(decodeEvent(document('created')));
  });

  test('a UUID in capital letters is the same record and the same company', () => {
    const shouted = document('created', {
      id: id.toUpperCase(),
      company: { ...company, id: company.id.toUpperCase() },
    });
    expect(decodeEvent(shouted)).toEqual(decodeEvent(document('created')));
  });

  test.each([
    '2026-02-03T04:05:06.123456',
    '2026-02-03T04:05:06.123456789+02:00',
    '2026-02-03T04:05:06Z',
    '2026-02-03 04:05',
    '2026-02-03',
  ])('a time keeps its text: %s', (updated) => {
    expect(decodeEvent(document('updated', { updated })).occurredAt).toBe(updated);
  });

  test('a meter is a text or a number, and bounds are days, times or Unix seconds', () => {
    expect(decodeEvent(intervals({ meterId: 4711 })).recordId).toBe('4711');
    for (const bound of ['2026-01-01', '2026-01-01T00:00:00Z', '1770000000', 1_770_000_000]) {
      const decoded = decodeEvent(intervals({ start: bound, end: bound }));
      expect(decoded, String(bound)).toMatchObject({ kind: 'interval', recordId: 'm-1' });
    }
  });

  test('unknown fields, and null for optional values, change nothing', () => {
    const more = { site: null, created: null, tariff: { id: randomUUID() } };
    expect(decodeEvent(document('created', more))).toEqual(decodeEvent(document('created')));
  });
});

describe('keys of prototypes', () => {
  const hostile = (fields: string) =>
    JSON.parse(`{"__proto__":{"eventType":"document.deleted.v2","polluted":true},${fields}}`) as object;

  test('create no type, and fill no missing field', () => {
    expect(failureOf(hostile('"hello":1')).message).toContain('no eventType');
    const company = '"company":{"__proto__":{"id":"0b7c1f5e-2d7a-4b7e-9c61-0a1b2c3d4e5f"}}';
    const inner = hostile(`"eventType":"document.created.v2","id":"${id}","updated":"${at}",${company}`);
    expect(decodeEvent(inner).companyId).toBeNull();
  });

  test('leave every other object unchanged', () => {
    const payload = { ...document('created'), constructor: { prototype: { polluted: true } } };
    expect(decodeEvent(payload)).toEqual(ofRecord('document.created.v2', 'document'));
    decodeEvent(hostile('"eventType":"hello"'));
    expect({}).not.toHaveProperty('polluted');
  });
});
