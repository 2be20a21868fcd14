import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import { describe, expect, test } from 'vitest';
import { recordEvents } from '../../db/events/record.ts';
import { settleRecords } from '../../db/events/settle.ts';
import { warehouseNow } from '../../db/queue/due.ts';
import { delivery, documentEvent } from '../support/events.ts';
import { forFile } from '../support/for-file.ts';
import { rowOf, writeRecords } from '../support/pages.ts';
import { createWarehouse } from '../support/warehouse.ts';

const warehouse = await forFile(createWarehouse());

const rows = async (query: ReturnType<typeof sql>) => (await warehouse.db.execute(query)).rows;

describe('amounts', () => {
  test.each([
    ['a number', '12345678901234567890.000000000000000001'],
    ['a decimal string', '"12345678901234567890.000000000000000001"'],
    ['a number that a float would round', '0.1000000000000000055511151231257827'],
    ['a trailing zero', '1.10'],
    ['a negative amount', '-0.010'],
    ['an exponent', '1.5e3'],
  ])('%s keeps all its digits in its column and in raw', async (_, written) => {
    const id = randomUUID();
    await writeRecords(warehouse, 'usageData', [`{"id":"${id}","usage":${written}}`]);
    const [row] = await rows(sql`select usage = ${written.replaceAll('"', '')}::numeric as exact,
      scale(usage) = scale(${written.replaceAll('"', '')}::numeric) as same_scale,
      raw ->> 'usage' = ${written}::jsonb #>> '{}' as raw_exact from utility.usage_data where id = ${id}::uuid`);
    expect(row).toEqual({ exact: true, same_scale: true, raw_exact: true });
  });
});

describe('times', () => {
  const updatedOf = async (of: typeof warehouse, updated: string) => {
    const id = randomUUID();
    await writeRecords(of, 'documents', [{ id, updated }]);
    const result = await of.db.execute<{ at: string }>(
      sql`select to_char(updated at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US') as at from utility.documents where id = ${id}::uuid`,
    );
    return result.rows[0]?.at;
  };

  test.each([
    ['2026-01-02T03:04:05.678901', '2026-01-02T03:04:05.678901'],
    ['2026-01-02T03:04:05.678901Z', '2026-01-02T03:04:05.678901'],
    ['2026-01-02T03:04:05.678901+02:00', '2026-01-02T01:04:05.678901'],
    ['2026-01-02T03:04:05-0530', '2026-01-02T08:34:05.000000'],
    ['2026-01-02 03:04:05', '2026-01-02T03:04:05.000000'],
    ['2026-01-02', '2026-01-02T00:00:00.000000'],
    ['2026-01-02T03:04:05.678901499', '2026-01-02T03:04:05.678901'],
    ['2026-01-02T03:04:05.678901999', '2026-01-02T03:04:05.678901'],
    ['1767323045', '2026-01-02T03:04:05.000000'],
  ])('of %s are read as %s UTC', async (sent, read) => {
    expect(await updatedOf(warehouse, sent)).toBe(read);
  });

  test('without a zone are read in the configured zone, and the setting does not affect times with a zone', async () => {
    const newYork = await createWarehouse('America/New_York');
    try {
      expect(await updatedOf(newYork, '2026-07-02T03:04:05.678901')).toBe('2026-07-02T07:04:05.678901');
      expect(await updatedOf(newYork, '2026-01-02T03:04:05.678901')).toBe('2026-01-02T08:04:05.678901');
      expect(await updatedOf(newYork, '2026-07-02T03:04:05.678901Z')).toBe('2026-07-02T03:04:05.678901');
      expect(await updatedOf(newYork, '2026-07-02T03:04:05.678901+01:00')).toBe('2026-07-02T02:04:05.678901');
    } finally {
      await newYork.drop();
    }
  });

  test.each(['.1234564', '.123456500', '.123456501', '.123455500', '.999999999'])(
    'with up to nine fraction digits (%s) are rounded equally in event and record, so the record settles the event',
    async (fraction) => {
      const id = randomUUID();
      const updated = `2026-01-02T03:04:05${fraction}`;
      const event = delivery(documentEvent('updated', id, updated));
      await recordEvents(warehouse.db, [event]);
      const readAt = await warehouseNow(warehouse.db);
      await writeRecords(warehouse, 'documents', [{ id, updated }], { readAt });
      await settleRecords(warehouse.db, 'documents', [id], readAt);
      expect(await rows(sql`select outcome from metersync.events where id = ${event.id}`)).toEqual([
        { outcome: 'applied' },
      ]);
    },
  );
});

describe('raw', () => {
  test('is the record as the service sent it, with unknown fields and nesting', async () => {
    const id = randomUUID();
    const record = { id, brandNew: [{ a: null, b: ['x', 1, true] }], nested: { name: 'of a field' } };
    await writeRecords(warehouse, 'documents', [record]);
    expect((await rowOf(warehouse, 'documents', id))?.raw).toEqual(record);
  });
});
