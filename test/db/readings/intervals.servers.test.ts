import { sql } from 'drizzle-orm';
import { describe, expect, test } from 'vitest';
import { compareReadings } from '../../../db/read/compare-parts.ts';
import type { IntervalColumns } from '../../../db/readings/texts.ts';
import { refusedAs } from '../../../db/records/rejected.ts';
import { forFile } from '../../support/for-file.ts';
import { began, pageOfReadings, writeReadings } from '../../support/readings.ts';
import { createWarehouse } from '../../support/warehouse.ts';

const warehouse = await forFile(createWarehouse());

const readings = (
  starts: readonly string[],
  usage: string,
  updated = '2026-01-01T00:00:00.000001',
): IntervalColumns => ({
  startAt: starts,
  endAt: starts.map((start) => start.replace(/:00:00(?=$|\+|Z)/, ':15:00')),
  granularitySeconds: starts.map(() => null),
  usage: starts.map(() => usage),
  usageUnits: starts.map(() => 'kWh'),
  quality: starts.map(() => 'MEASURED'),
  updated: starts.map(() => updated),
  id: starts.map(() => null),
});
const hours = ['2026-01-31T22:00:00', '2026-01-31T23:00:00', '2026-02-01T00:00:00'];
const held = async (meterId: string) =>
  (
    await warehouse.db.execute(sql`
      select (start_at at time zone 'UTC')::text as start_at, granularity_seconds as seconds, usage, tableoid::regclass::text as partition
      from utility.intervals where meter_id = ${meterId} order by start_at`)
  ).rows;

/** Compares readings with the readings of the warehouse, as an audit does. */
async function compared(meterId: string, columns: IntervalColumns) {
  const { pages, refused } = await pageOfReadings(warehouse, meterId, columns);
  const found = await compareReadings(warehouse.db, { meterId, readAt: began(1), range: {}, pages });
  return { ...found, refused: refused.map(refusedAs) };
}

describe('readings that are written', () => {
  test('writes new readings with exact values into the partitions of their months', async () => {
    const exact = '12345678901234567890.000000000000000001';
    expect(await writeReadings(warehouse, 'fresh', began(1), readings(hours, exact))).toMatchObject({
      inserted: 3,
      changed: 0,
      rejected: 0,
    });
    expect(await held('fresh')).toEqual([
      { start_at: '2026-01-31 22:00:00', seconds: 900, usage: exact, partition: 'utility.intervals_2026_01' },
      { start_at: '2026-01-31 23:00:00', seconds: 900, usage: exact, partition: 'utility.intervals_2026_01' },
      { start_at: '2026-02-01 00:00:00', seconds: 900, usage: exact, partition: 'utility.intervals_2026_02' },
    ]);
  });

  test('inserts new readings, changes rows that have newer readings, and leaves identical readings untouched', async () => {
    await writeReadings(warehouse, 'over', began(1), readings(hours.slice(0, 2), '1'));
    expect(await writeReadings(warehouse, 'over', began(2), readings(hours, '1'))).toMatchObject({
      inserted: 1,
      changed: 0,
    });
    const corrected = readings(hours.slice(1), '2', '2026-01-02T00:00:00.000001');
    expect(await writeReadings(warehouse, 'over', began(3), corrected)).toMatchObject({
      inserted: 0,
      changed: 2,
    });
    expect(await writeReadings(warehouse, 'over', began(3), corrected)).toMatchObject({
      inserted: 0,
      changed: 0,
    });
    expect((await held('over')).map((row) => row.usage)).toEqual(['1', '2', '2']);
  });

  test('the later read wins, whatever the readings say about when they changed', async () => {
    const at = (usage: string, updated: string) => readings(hours.slice(0, 1), usage, updated);
    await writeReadings(warehouse, 'guard', began(2), at('2', '2026-01-02T00:00:00'));
    await writeReadings(warehouse, 'guard', began(3), at('1', '2026-01-01T00:00:00'));
    await writeReadings(warehouse, 'guard', began(1), at('3', '2026-01-02T00:00:00'));
    expect((await held('guard')).map((row) => row.usage)).toEqual(['1']);
  });

  test('creates a dropped partition again', async () => {
    await writeReadings(warehouse, 'dropped', began(1), readings(['2025-05-01T00:00:00'], '1'));
    await warehouse.db.execute(sql`drop table utility.intervals_2025_05`);
    await writeReadings(warehouse, 'dropped', began(1), readings(['2025-05-02T00:00:00'], '2'));
    expect((await held('dropped')).map((row) => row.usage)).toEqual(['2']);
  });

  test('creates a partition again that was detached and moved away, and leaves the moved partition unchanged', async () => {
    await writeReadings(warehouse, 'archived', began(1), readings(['2025-04-01T00:00:00'], '1'));
    const run = (text: string) => warehouse.db.execute(sql.raw(text));
    await run('create schema archive');
    await run('alter table utility.intervals detach partition utility.intervals_2025_04');
    await run('alter table utility.intervals_2025_04 set schema archive');
    await writeReadings(warehouse, 'archived', began(1), readings(['2025-04-01T00:00:00'], '2'));
    expect((await held('archived')).map((row) => row.usage)).toEqual(['2']);
    expect((await run('select usage from archive.intervals_2025_04')).rows).toEqual([{ usage: '1' }]);
  });

  test('writes readings of any year, and creates no partitions for the months between', async () => {
    const partitions = async () =>
      (
        await warehouse.db.execute(
          sql`select from pg_inherits where inhparent = 'utility.intervals'::regclass`,
        )
      ).rowCount ?? 0;
    const years = ['0001', '1700', '1970', '1999', '2000', '2026', '2049', '2050', '9999'];
    const starts = years.flatMap((year) => [`${year}-06-01T00:00:00`, `${year}-06-01T01:00:00`]);
    const before = await partitions();
    for (const [meter, suffix] of [
      ['plain', 'Z'],
      ['offset', '+00:00'],
    ] as const) {
      const columns = readings(
        ['0000-06-01T00:00:00', ...starts].map((start) => start + suffix),
        '1',
      );
      expect(await writeReadings(warehouse, meter, began(1), columns)).toMatchObject({
        inserted: starts.length,
        changed: 0,
        rejected: 1,
      });
      expect(await compared(meter, columns)).toMatchObject({
        differences: [],
        readings: starts.length,
        refused: [`${meter}@0000-06-01T00:00:00${suffix}`],
      });
    }
    expect(await partitions()).toBeLessThanOrEqual(before + 3);
    expect((await held('plain')).map(({ partition }) => partition)).toEqual([
      ...Array(8).fill('utility.intervals_before_2000'),
      ...['2000', '2026', '2049'].flatMap((year) => Array(2).fill(`utility.intervals_${year}_06`)),
      ...Array(4).fill('utility.intervals_from_2050'),
    ]);
  });

  test('cuts off digits below microseconds both when it writes and when it compares', async () => {
    const starts = ['2026-05-01T00:00:00.123456789Z', '2026-05-01T01:00:00.1234567'];
    const columns = { ...readings(starts, '1'), granularitySeconds: [900, 900] };
    expect(await writeReadings(warehouse, 'nanoseconds', began(1), columns)).toMatchObject({
      inserted: 2,
    });
    expect(await compared('nanoseconds', columns)).toMatchObject({ differences: [] });
    // The time of change is cut off too. The two readings then have the same time, so the later read wins.
    const changed = (usage: string, updated: string) =>
      writeReadings(warehouse, 'fraction', began(Number(usage)), readings(hours.slice(0, 1), usage, updated));
    await changed('1', '2026-01-01T00:00:00.1234567Z');
    await changed('2', '2026-01-01T00:00:00.123456+00:00');
    expect((await held('fraction')).map((row) => row.usage)).toEqual(['2']);
  });

  test('keeps every reading of a page, even readings with the same time', async () => {
    const twice = { ...readings([...hours, ...hours], '5'), usage: ['1', '2', '3', '-1', '-2', '3'] };
    expect(await writeReadings(warehouse, 'twice', began(1), twice)).toMatchObject({ inserted: 6 });
    expect(await writeReadings(warehouse, 'twice', began(2), twice)).toMatchObject({
      inserted: 0,
      changed: 0,
    });
    expect((await held('twice')).map((row) => row.usage).toSorted()).toEqual([
      '-1',
      '-2',
      '1',
      '2',
      '3',
      '3',
    ]);
    expect(await compared('twice', twice)).toMatchObject({ differences: [], readings: 6 });
  });

  test('keeps a reading without a length as a rejected record, and writes the others', async () => {
    const columns = { ...readings(hours, '1'), granularitySeconds: [null, -1, null] };
    expect(await writeReadings(warehouse, 'refused', began(1), columns)).toMatchObject({
      inserted: 2,
      changed: 0,
      rejected: 1,
    });
    const kept = await warehouse.db.execute(
      sql`select record_id, error from metersync.rejected_records where starts_with(record_id, 'refused@')`,
    );
    expect(kept.rows).toEqual([
      { record_id: 'refused@2026-01-31T23:00:00', error: 'The reading ends where it begins, or before.' },
    ]);
  });

  test('writes readings with NUL or half of a surrogate pair, and names their fields', async () => {
    const given = {
      ...readings(hours, '1'),
      quality: ['a', 'b\0', 'c\td\\'],
      usageUnits: ['kWh', 'kWh', '\ud800'],
      updated: [null, '\0', null],
      usage: ['1\udc00', '2', '3'],
      granularitySeconds: [3600, null, null],
      endAt: ['\0', ...readings(hours, '1').endAt.slice(1)],
    };
    const write = () => writeReadings(warehouse, 'replaced', began(1), given);
    expect(await write()).toMatchObject({ inserted: 3, rejected: 0, unreadable: 5 });
    expect(await write()).toMatchObject({ inserted: 0, changed: 0, rejected: 0 });
    const { rows } = await warehouse.db.execute(sql`
      select usage, usage_units, quality, unreadable from utility.intervals where meter_id = 'replaced'
      order by start_at`);
    expect(rows).toEqual([
      {
        usage: null,
        usage_units: 'kWh',
        quality: 'a',
        unreadable: { usage: String.raw`1\udc00`, end: String.raw`\u0000` },
      },
      {
        usage: '2',
        usage_units: 'kWh',
        quality: 'b\ufffd',
        unreadable: { quality: String.raw`b\u0000`, updated: String.raw`\u0000` },
      },
      {
        usage: '3',
        usage_units: '\ufffd',
        quality: 'c\td\\',
        unreadable: { usageUnits: String.raw`\ud800` },
      },
    ]);
  });

  test.each([
    ['usage', '1,234.56', 'usage'],
    ['usage', '1e200000', 'usage'],
    ['usage', '', null],
    ['updated', '2026-02-30T00:00:00', 'updated'],
  ] as const)('keeps a reading whose %s is %j, and writes the others', async (column, text, field) => {
    const meter = `unreadable ${column} ${text.slice(0, 20)}`;
    const sound = readings(hours, '1', '2026-01-01T00:00:00');
    const odd = { ...sound, [column]: [sound[column][0] ?? null, text, sound[column][2] ?? null] };
    expect(await writeReadings(warehouse, meter, began(1), odd)).toMatchObject({
      inserted: 3,
      changed: 0,
      rejected: 0,
      ...(field === null ? {} : { unreadable: 1 }),
    });
    const kept = async () =>
      (
        await warehouse.db.execute(
          sql`select ${sql.identifier(column)} is null as empty, unreadable from utility.intervals
            where meter_id = ${meter} order by start_at`,
        )
      ).rows;
    const full = { empty: false, unreadable: null };
    const unreadable = field === null ? null : { [field]: text.slice(0, 200) };
    expect(await kept()).toEqual([full, { empty: true, unreadable }, full]);
    expect(await compared(meter, odd)).toMatchObject({
      differences: [],
      readings: 3,
      unreadable: field === null ? 0 : 1,
    });
    const unchanged = { inserted: 0, changed: 0, rejected: 0 };
    expect(await writeReadings(warehouse, meter, began(2), odd)).toMatchObject(unchanged);
    await writeReadings(warehouse, meter, began(3), sound);
    expect(await kept()).toEqual([full, full, full]);
  });

  test.each(['2026-02-30T00:00:00', ''])(
    'names a reading that starts at %j, which has no row, and writes the others',
    async (start) => {
      const meter = `no start ${start}`;
      const columns = readings([hours[0] ?? '', start, hours[2] ?? ''], 'N/A');
      expect(await writeReadings(warehouse, meter, began(1), columns)).toMatchObject({
        inserted: 2,
        changed: 0,
        rejected: 1,
        unreadable: 2,
      });
      const { rows } = await warehouse.db.execute(
        sql`select record_id, error from metersync.rejected_records where starts_with(record_id, ${`${meter}@`})`,
      );
      expect(rows).toEqual([
        { record_id: `${meter}@${start}`, error: `Cannot read ${JSON.stringify(start)} as a time.` },
      ]);
    },
  );

  test.each(['Z', '+00:00'])(
    'refuses readings without length by name, and writes the others (%s)',
    async (zone) => {
      const meter = `wrong${zone}`;
      const day = (hour: string) => `2026-01-31T${hour}${zone}`;
      const columns: IntervalColumns = {
        ...readings(['00:00:00', '01:00:00', '02:00:00', '03:00:00', '04:00:00', '05:00:00'].map(day), '1'),
        endAt: ['00:15:00', '01:00:00', '01:00:00', '03:15:00', '04:15:00', '05:15:00'].map(day),
        usage: ['1', '1', '1', 'NaN', '-Infinity', '1'],
      };
      expect(await writeReadings(warehouse, meter, began(1), columns)).toMatchObject({
        inserted: 4,
        changed: 0,
        rejected: 2,
        unreadable: 2,
      });
      expect((await held(meter)).map(({ start_at }) => start_at)).toEqual([
        '2026-01-31 00:00:00',
        '2026-01-31 03:00:00',
        '2026-01-31 04:00:00',
        '2026-01-31 05:00:00',
      ]);
      const kept = await warehouse.db.execute(sql`
      select record_id, error from metersync.rejected_records where starts_with(record_id, ${meter}) order by record_id`);
      expect(kept.rows).toEqual([
        { record_id: `${meter}@${day('01:00:00')}`, error: 'The reading ends where it begins, or before.' },
        {
          record_id: `${meter}@${day('02:00:00')}`,
          error: expect.stringMatching(/or before|granularity_is_positive/),
        },
      ]);
      const { differences, refused } = await compared(meter, columns);
      expect({ differences, refused: refused.length }).toEqual({ differences: [], refused: 2 });
      await warehouse.db.execute(
        sql`delete from metersync.rejected_records where starts_with(record_id, ${meter})`,
      );
      const all = { ...columns, endAt: columns.startAt };
      expect(await writeReadings(warehouse, meter, began(2), all)).toMatchObject({
        inserted: 0,
        rejected: 6,
      });
    },
  );

  test.each(['2033-06-30T24:00:00Z', '2033-06-30T23:59:60Z'])(
    'writes a reading of %s as the first reading of the next day, with its key',
    async (start) => {
      const meterId = `midnight ${start}`;
      const at = (starts: readonly string[], usage: string) => ({
        ...readings(starts, usage),
        granularitySeconds: starts.map(() => 900),
      });
      await writeReadings(warehouse, meterId, began(1), at([start], '1'));
      const spelled = ['2033-07-01T00:00:00Z', '2033-07-01T00:15:00Z'];
      expect(await writeReadings(warehouse, meterId, began(2), at(spelled, '2'))).toMatchObject({
        inserted: 1,
        changed: 1,
      });
      expect(await held(meterId)).toMatchObject([
        { start_at: '2033-07-01 00:00:00', usage: '2', partition: 'utility.intervals_2033_07' },
        { start_at: '2033-07-01 00:15:00', usage: '2', partition: 'utility.intervals_2033_07' },
      ]);
    },
  );

  test('reads times with an offset, and times in the configured zone, like Postgres', async () => {
    const berlin = await createWarehouse('Europe/Berlin');
    try {
      const columns = readings(['2026-03-29T01:00:00', '2026-03-29T03:00:00'], '1');
      await writeReadings(berlin, 'dst', began(1), columns);
      await writeReadings(berlin, 'offset', began(1), readings(['2026-03-29T01:00:00+05:00'], '1'));
      const rows = await berlin.db.execute(sql`
        select meter_id, (start_at at time zone 'UTC')::text as at from utility.intervals order by meter_id, start_at`);
      expect(rows.rows).toEqual([
        { meter_id: 'dst', at: '2026-03-29 00:00:00' },
        { meter_id: 'dst', at: '2026-03-29 01:00:00' },
        { meter_id: 'offset', at: '2026-03-28 20:00:00' },
      ]);
    } finally {
      await berlin.drop();
    }
  });
});
