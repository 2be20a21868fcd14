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

describe('interval columns', () => {
  test('are the text of the records', () => {
    expect(read(JSON.stringify(reading))).toEqual({
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
    });
  });

  test('are read from a bare array, and from records that were parsed before', () => {
    const body = JSON.stringify([reading]);
    expect(readIntervals(body, null)).toEqual(read(JSON.stringify(reading)));
    expect(readIntervals(body, null, JSON.parse(body))).toEqual(read(JSON.stringify(reading)));
  });

  test('accept other names for the bounds and the meter', () => {
    const columns = read(
      '{"startDate": "2025-01-01", "endDate": "2025-01-02", "meter": "m2", "usage": null}',
      '{"start": 1735689600, "end": 1735690500, "meter": {"id": "m3", "name": "x"}}',
      '{"start": "a", "end": "b", "meterId": 90071992547409931234}',
      '{"start": "a", "end": "b"}',
    );
    expect(columns.startAt).toEqual(['2025-01-01', '1735689600', 'a', 'a']);
    expect(columns.endAt).toEqual(['2025-01-02', '1735690500', 'b', 'b']);
    expect(columns.meterId).toEqual(['m2', 'm3', '90071992547409931234', null]);
    expect(columns.usage).toEqual([null, null, null, null]);
  });

  test('accept a granularity that is sent in whole seconds', () => {
    const columns = read(
      '{"start": "a", "granularitySeconds": 900}',
      '{"start": "a", "end": "b", "granularity": "3600"}',
      '{"start": "a", "end": "b", "granularity": "PT15M"}',
      '{"start": "a", "end": "b", "granularitySeconds": 900.5}',
      '{"start": "a", "end": "b", "granularitySeconds": 0}',
    );
    expect(columns.granularitySeconds).toEqual([900, 3600, null, null, null]);
    expect(columns.endAt).toEqual([null, 'b', 'b', 'b', 'b']);
  });

  test('leave out records without a place in time, and list their positions', () => {
    const columns = read('{"end": "b", "usage": 1.5}', JSON.stringify(reading), '{"start": "a"}', '7');
    expect(columns.unplaced).toEqual([0, 2, 3]);
    expect(columns.startAt).toHaveLength(1);
    expect(columns.usage).toEqual(['1.2300']);
  });

  test('keep a value of the wrong kind as its JSON, for the warehouse to refuse', () => {
    expect(read('{"start": "a", "end": "b", "usage": {"value": 1}}').usage).toEqual(['{"value":1}']);
  });
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

  test('is kept next to other numbers that a float would round', () => {
    const columns = read(
      '{"start": 1735689600.1234567891, "end": "b", "usage": 1.50, "meter": {"id": 12.50}}',
    );
    expect(columns.startAt).toEqual(['1735689600.1234567891']);
    expect(columns.usage).toEqual(['1.50']);
    expect(columns.meterId).toEqual(['12.50']);
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
