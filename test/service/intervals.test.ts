import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type ListedIntervals, readIntervals } from '../../service/intervals.ts';

const reading = {
  id: 'i1',
  start: '2025-03-30T00:00:00.123456',
  end: '2025-03-30T00:15:00.123456',
  usage: '1.2300',
  usageUnits: 'kWh',
  quality: 'ACTUAL',
  updated: '2025-03-30T01:00:00',
  meterId: 'm1',
};

/** Reads JSON text of records, each in an envelope as the service sends it. */
const read = (...records: string[]): ListedIntervals =>
  readIntervals(`{"totalIntervals": 1, "intervals": [${records.join(',')}]}`, 'intervals');

test('interval columns are the text of the records, also of a bare array or of records that were parsed', () => {
  const columns = {
    startAt: ['2025-03-30T00:00:00.123456'],
    endAt: ['2025-03-30T00:15:00.123456'],
    id: ['i1'],
    usage: ['1.2300'],
    usageUnits: ['kWh'],
    quality: ['ACTUAL'],
    updated: ['2025-03-30T01:00:00'],
    meterId: ['m1'],
    granularitySeconds: [null],
    unplaced: [],
  };
  const body = JSON.stringify([reading]);
  expect(read(JSON.stringify(reading))).toEqual(columns);
  expect(readIntervals(body, null)).toEqual(columns);
  expect(readIntervals(body, null, JSON.parse(body))).toEqual(columns);
});

test.each<[what: string, record: string, columns: Partial<Record<keyof ListedIntervals, unknown>>]>([
  [
    'bounds and a meter of other names',
    '{"startDate": "2025-01-01", "endDate": "2025-01-02", "meter": "m2", "usage": null}',
    { startAt: '2025-01-01', endAt: '2025-01-02', meterId: 'm2', usage: null },
  ],
  [
    'bounds that are numbers, and a meter that is an object',
    '{"start": 1735689600, "end": 1735690500, "meter": {"id": "m3", "name": "x"}}',
    { startAt: '1735689600', endAt: '1735690500', meterId: 'm3', usage: null },
  ],
  [
    'a meter beyond a double',
    '{"start": "a", "end": "b", "meterId": 90071992547409931234}',
    { meterId: '90071992547409931234' },
  ],
  [
    'numbers that a float would round',
    '{"start": 1735689600.1234567891, "end": "b", "usage": 1.50, "meter": {"id": 12.50}}',
    { startAt: '1735689600.1234567891', usage: '1.50', meterId: '12.50' },
  ],
  ['no meter', '{"start": "a", "end": "b"}', { meterId: null, usage: null, granularitySeconds: null }],
  ['seconds', '{"start": "a", "granularitySeconds": 900}', { granularitySeconds: 900, endAt: null }],
  ['seconds as a text', '{"start": "a", "end": "b", "granularity": "3600"}', { granularitySeconds: 3600 }],
  ['a duration', '{"start": "a", "end": "b", "granularity": "PT15M"}', { granularitySeconds: null }],
  ['half a second', '{"start": "a", "end": "b", "granularitySeconds": 900.5}', { granularitySeconds: null }],
  ['no seconds', '{"start": "a", "end": "b", "granularitySeconds": 0}', { granularitySeconds: null }],
  // The warehouse refuses a value of the wrong kind.
  ['usage that is an object', '{"start": "a", "end": "b", "usage": {"value": 1}}', { usage: '{"value":1}' }],
])('interval columns are read from a record with %s', (_what, record, columns) => {
  const found = read(record);
  for (const [column, value] of Object.entries(columns))
    expect(found[column as keyof ListedIntervals], column).toEqual([value]);
});

test('interval columns leave out records without a place in time, and list their positions', () => {
  const columns = read('{"end": "b", "usage": 1.5}', JSON.stringify(reading), '{"start": "a"}', '7');
  expect(columns.unplaced).toEqual([0, 2, 3]);
  expect(columns.usage).toEqual(['1.2300']);
});

describe('an amount that is a number', () => {
  const ofUsage = (text: string): string => `{"start": "a", "usage": ${text}, "end": "b"}`;

  test.each([
    ['before', '{"parts": [{"usage": 7}], "usage": 1.50, "start": "a", "end": "b"}'],
    ['after', '{"usage": 1.50, "parts": [{"usage": 7}], "start": "a", "end": "b"}'],
    ['twice in one record', '{"usage": 7, "usage": 1.50, "start": "a", "end": "b"}'],
    ['spelled with an escape', '{"\\u0075sage": 1.50, "parts": [{"usage": 7}], "start": "a", "end": "b"}'],
    ['in a name', '{"a\\"usage": 7, "usage": 1.50, "start": "a", "end": "b"}'],
    ['in a text', '{"note": "\\"usage\\": 7", "usage": 1.50, "start": "a", "end": "b"}'],
    [
      'as a text, with room around the colon',
      '{"note": "usage", "usage"\t:\n1.50, "start": "a", "end": "b"}',
    ],
  ])('is not confused with another "usage" %s', (_, record) => {
    expect(read(ofUsage('2.250'), record, ofUsage('3.30')).usage).toEqual(['2.250', '1.50', '3.30']);
  });

  test('is not confused if one record lacks it and another nests it', () => {
    const columns = read('{"start": "a", "end": "b"}', '{"start": "a", "end": "b", "parts": {"usage": 7}}');
    expect(columns.usage).toEqual([null, null]);
    const mixed = read(
      ofUsage('1.50'),
      '{"start": "a", "end": "b", "parts": {"usage": 7.0}}',
      ofUsage('"2.0"'),
    );
    expect(mixed.usage).toEqual(['1.50', null, '2.0']);
  });

  test('is not taken from the envelope', () => {
    const body = `{"usage": 7, "intervals": [${ofUsage('1.50')}]}`;
    expect(readIntervals(body, 'intervals').usage).toEqual(['1.50']);
  });

  test('keeps its digits in any record', () => {
    const digits = fc.stringMatching(/^-?(0|[1-9][0-9]{0,30})(\.[0-9]{1,30})?([eE][+-]?[0-9]{1,3})?$/);
    const amount = fc.oneof(
      digits,
      digits.map((text) => JSON.stringify(text)),
      fc.constant('null'),
    );
    const noise = fc.oneof(
      fc.constant(''),
      fc.constant('"parts": [{"usage": 7.10}],'),
      fc.string().map((text) => `"note": ${JSON.stringify(text)},`),
      fc.constant('"note": "\\"usage\\":1",'),
      fc.constant('"note": "\\u0075",'),
    );
    const record = fc.record({ amount: fc.option(amount, { nil: null }), before: noise, after: noise });
    fc.assert(
      fc.property(fc.array(record, { maxLength: 8 }), (records) => {
        const texts = records.map(({ amount: sent, before, after }) => {
          return `{${before}${sent === null ? '' : `"usage": ${sent},`}${after}"start":"a","end":"b"}`;
        });
        const digitsSent = records.map(({ amount: sent }) => (sent === 'null' ? null : sent));
        expect(read(...texts).usage).toEqual(digitsSent.map((sent) => sent?.replaceAll('"', '') ?? null));
      }),
      { numRuns: 500 },
    );
  });
});
