import { sql } from 'drizzle-orm';
import { expect, test } from 'vitest';
import { forFile } from '../support/for-file.ts';
import { startPipeline } from '../support/pipeline.ts';
import { until } from '../support/poll.ts';

const pipeline = await forFile(
  startPipeline({
    size: { companies: 3, documents: 40, intervalDays: 1 },
    sandbox: { irregular: 0.4 },
  }),
);

/** Returns which of the documents count, in the given order. */
async function effective(ids: readonly string[]): Promise<boolean[]> {
  const { rows } = await pipeline.warehouse.db.execute<{ is_effective: boolean }>(sql`
    select is_effective from unnest(${sql.param(ids)}::uuid[]) with ordinality as asked (id, place)
      join analytics.bills_all on bill_id = id order by place`);
  return rows.map((row) => row.is_effective);
}

test('corrections, corrections of them and their undoing decide which bill counts', {
  timeout: 60_000,
}, async () => {
  expect(await pipeline.backfill()).toBe('complete');
  expect(await pipeline.audit()).toMatchObject({ differences: 0, examples: [] });

  await until('the worker has checked what was read', async () => {
    const found = await pipeline.warehouse.db.execute<{ check_name: string }>(
      sql`select distinct check_name from ops.data_issues where closed_at is null`,
    );
    const names = found.rows.map((row) => row.check_name);
    return ['bill_gap', 'bill_overlap', 'duplicate_bill', 'usage_spike'].every((name) =>
      names.includes(name),
    );
  });

  const freshness = async () => {
    const read = sql`select resource, count(*)::int as companies, count(last_complete_at)::int as read,
      count(last_event_applied_at)::int as "withEvents", sum(pending_events)::int as pending
      from ops.freshness group by 1 order by 1`;
    return (await pipeline.warehouse.db.execute(read)).rows;
  };
  const noEvents = { companies: 3, read: 3, withEvents: 0, pending: 0 };
  const resources = ['connections', 'documents', 'intervals', 'meters', 'usageData'];
  expect(await freshness()).toEqual(resources.map((resource) => ({ resource, ...noEvents })));

  const { rows } = await pipeline.warehouse.db.execute<{ id: string }>(
    sql`select bill_id as id from analytics.bills b where not exists (
      select from utility.documents d where d.revised_document_id = b.bill_id) order by bill_id limit 1`,
  );
  const first = rows[0]?.id ?? '';
  const change = async (one: object) => {
    const [id = ''] = await pipeline.service.change(one);
    await pipeline.settled();
    return id;
  };
  const second = await change({ type: 'supersedeDocument', documentId: first });
  const third = await change({ type: 'supersedeDocument', documentId: second });
  const chain = [first, second, third];
  expect(await effective(chain)).toEqual([false, false, true]);
  expect((await freshness())[1]).toEqual({ resource: 'documents', ...noEvents, withEvents: 1 });
  await change({ type: 'deleteDocument', documentId: third });
  expect(await effective(chain)).toEqual([false, true, false]);
  await change({ type: 'linkDocument', documentId: first, revisedDocumentId: null });
  expect(await effective(chain)).toEqual([true, true, false]);
  expect(await pipeline.audit()).toMatchObject({ differences: 0, examples: [] });
});
