import { sql } from 'drizzle-orm';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { isDateText, isNumberText, isTimeText } from '../../contract/values.ts';
import { array } from '../../db/connection/arrays.ts';
import { cases } from '../support/cases.ts';
import { forFile } from '../support/for-file.ts';
import { createWarehouse } from '../support/warehouse.ts';

const warehouse = await forFile(createWarehouse());

const number = fc
  .tuple(
    fc.constantFrom('', ' ', '\t\n', '\u00a0'),
    fc.constantFrom('', '-', '+', '--', '−'),
    fc.constantFrom('0', '12', '1_000', '1,000', '٣', '0x1F', '', '9'.repeat(300), '9'.repeat(999)),
    fc.constantFrom('', '.', '.5', '.5.5', ',5', `.${'0'.repeat(400)}1`),
    fc.constantFrom('', 'e3', 'E-4', 'e+99', 'e9999', 'e-9999', 'e99999', 'e', 'e1.5'),
    fc.constantFrom('', ' ', '\r\v\f', ' kWh', '٣'),
  )
  .map((parts) => parts.join(''));
const time = fc
  .tuple(
    fc.constantFrom('2026', '2024', '2000', '1900', '0000', '0001', '9999', '26', '12026', '٢٠٢٦'),
    fc.constantFrom('-', '-', '-', '/', ''),
    fc.constantFrom('01', '02', '04', '12', '00', '13', '1'),
    fc.constantFrom('-01', '-28', '-29', '-30', '-31', '-00', '-32', '-1', ''),
    fc.constantFrom('T', 'T', ' ', 't', ''),
    fc.constantFrom('00:00', '23:59:59', '24:00', '24:00:00', '24:00:01', '23:59:60', '12:60', '9:00', ''),
    fc.constantFrom('', '.5', '.0', '.1234567891', ',5', '.'),
    fc.constantFrom(
      '',
      'Z',
      'z',
      '+02:00',
      '-0530',
      '+15:59',
      '+16',
      '+05',
      ' Z',
      ' America/New_York',
      ' BC',
    ),
  )
  .map((parts) => parts.join(''));
const seconds = fc.integer({ min: 0, max: 10 ** 12 }).map(String);
const text = fc.oneof(
  { weight: 4, arbitrary: number },
  { weight: 4, arbitrary: time },
  { weight: 1, arbitrary: seconds },
  { weight: 2, arbitrary: fc.string({ unit: fc.constantFrom(...'0123456789-+.:eETZ \u00a0٣') }) },
  fc.constantFrom('infinity', '-infinity', 'now', 'today', 'epoch', 'NaN', 'Inf', 'allballs', 'null', '\\N'),
);

describe('the grammar of texts', () => {
  test.each(['UTC', 'America/New_York', 'Asia/Kolkata'])(
    'is the same in TypeScript and in SQL, which never fails, in %s',
    async (zone) => {
      const attempt = async (texts: readonly string[]): Promise<void> => {
        const read = await warehouse.db.transaction(async (tx) => {
          await tx.execute(sql`select set_config('timezone', ${zone}, true)`);
          const result = await tx.execute(sql`
            select
              metersync.read_number(t) is not null as number,
              metersync.read_time(t) is not null as time,
              metersync.read_date(t) is not null as date,
              coalesce(metersync.number_of(t) = metersync.read_number(t), true) as alike
            from unnest(${array(texts, 'text')}) with ordinality as given (t, place)
            order by place`);
          return result.rows;
        });
        const expected = texts.map((one) => ({
          number: isNumberText(one),
          time: isTimeText(one),
          date: isDateText(one),
          alike: true,
        }));
        expect(read.map((row, at) => [texts[at], row])).toEqual(expected.map((row, at) => [texts[at], row]));
      };
      await fc.assert(fc.asyncProperty(fc.array(text, { minLength: 50, maxLength: 200 }), attempt), {
        seed: 20_261_127,
        numRuns: cases(30, 500),
      });
    },
  );
});
