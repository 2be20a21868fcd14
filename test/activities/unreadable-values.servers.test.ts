import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import { expect, test } from 'vitest';
import { mostCounted } from '../../db/read/bounds.ts';
import { rejectRecords } from '../../db/records/rejected.ts';
import { countUnreadable } from '../../db/records/unreadable-values.ts';
import { pageOf } from '../service/listing.ts';
import { activitiesOn } from '../support/activities.ts';

const updated = '2026-05-01T00:00:00.000001';

test('every backfill counts the values that it could not read, and stores records that an older version refused', async () => {
  const companyId = randomUUID();
  const [odd, sound, document] = [randomUUID(), randomUUID(), randomUUID()];
  const held: Readonly<Record<string, readonly { id: string }[]>> = {
    usageData: [
      { id: odd, updated, usage: '1,234.56', startDate: '2026-02-30', endDate: '' },
      { id: sound, updated, usage: ' 12 ' },
    ].map((row) => ({ ...row, document: { id: document } })),
    documents: [{ id: document, updated, created: 'yesterday' } as { id: string }],
  };
  const { run, activities, warehouse } = await activitiesOn(
    (asked) => {
      const key = asked.path.includes('usage') ? 'usageData' : 'documents';
      const total = key === 'usageData' ? 'totalUsageData' : 'totalDocuments';
      return pageOf(held[key] ?? [], asked, { key, total });
    },
    { intervals: null, connections: null, meters: null },
  );
  const { db } = warehouse;
  const text = JSON.stringify(held.usageData?.[0]);
  const refused = { resource: 'usageData', companyId, id: odd, text, error: 'invalid input syntax' };
  await rejectRecords(db, [refused]);
  for (const attempt of ['first', 'second']) {
    const runId = randomUUID();
    await db.execute(sql`insert into metersync.runs (run_id, state) values (${runId}::uuid, 'running')`);
    await run(activities.readCompany, { runId, companyId });
    await run(activities.concludeRun, { runId });
    const { rows } = await db.execute(sql`
      select resource, state, rows_rejected::int as rejected, values_unreadable::int as unreadable
      from ops.runs where run_id = ${runId}::uuid and (resource in ('documents', 'usageData') or resource is null)
      order by resource nulls last`);
    expect([attempt, rows]).toEqual([
      attempt,
      [
        { resource: 'documents', state: 'complete', rejected: 0, unreadable: 1 },
        { resource: 'usageData', state: 'complete', rejected: 0, unreadable: 2 },
        { resource: null, state: 'complete', rejected: 0, unreadable: 3 },
      ],
    ]);
  }
  expect(await countUnreadable(db, mostCounted)).toBe(3);
  const { rows } = await db.execute(sql`
    select id, usage, start_date, end_date, unreadable from utility.usage_data order by usage`);
  expect(rows).toEqual([
    { id: sound, usage: '12', start_date: null, end_date: null, unreadable: null },
    {
      id: odd,
      usage: null,
      start_date: null,
      end_date: null,
      unreadable: { usage: '1,234.56', startDate: '2026-02-30' },
    },
  ]);
  expect((await db.execute(sql`select from metersync.rejected_records`)).rowCount).toBe(0);
});
