import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { freeName, snakeCase } from '../../../db/fields/plan-views.ts';

describe('names of columns', () => {
  test.each([
    ['totalCharges', 'total_charges'],
    ['auditTrailURL', 'audit_trail_url'],
    ['URLOfPortal', 'url_of_portal'],
    ['usage2Date', 'usage2_date'],
    ['ISO-4217 code', 'iso_4217_code'],
    ['  spaced  ', 'spaced'],
    ['$ref', 'ref'],
    ['select', 'select'],
    ['1st', '_1st'],
    ['naïveÜber', 'naïve_über'],
    ['電気', '電気'],
    ['', 'field'],
    ['"; drop table x; --', 'drop_table_x'],
    ['😀', 'field'],
  ])('%j becomes %s', (field, name) => {
    expect(snakeCase(field)).toBe(name);
  });

  test('fit into 63 bytes, have whole characters, and are unique', () => {
    fc.assert(
      fc.property(fc.array(fc.string({ unit: 'grapheme', maxLength: 200 }), { maxLength: 30 }), (fields) => {
        const names: string[] = [];
        for (const field of fields) names.push(freeName(snakeCase(field), (name) => names.includes(name)));
        expect(new Set(names).size).toBe(fields.length);
        for (const name of names) {
          expect(Buffer.byteLength(name)).toBeLessThanOrEqual(63);
          expect(name.isWellFormed() && name !== '').toBe(true);
        }
      }),
    );
    const long = snakeCase('x'.repeat(200));
    expect(freeName(long, (name) => name === long)).toBe(`${'x'.repeat(61)}_2`);
  });
});
