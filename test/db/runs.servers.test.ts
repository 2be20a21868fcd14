import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import { describe, expect, test } from 'vitest';
import { concludeRun } from '../../db/backfill/run-end.ts';
import { finishRun, startRun } from '../../db/backfill/runs.ts';
import { company } from '../support/events.ts';
import { forFile } from '../support/for-file.ts';
import { createWarehouse } from '../support/warehouse.ts';

const warehouse = await forFile(createWarehouse());

describe('a run', () => {
  test.each([
    [['complete', 'complete'], 'complete'],
    [['complete', 'suspect'], 'suspect'],
    [['complete', 'failed'], 'partial'],
    [['suspect', 'failed', 'complete'], 'partial'],
    [['failed', 'failed'], 'failed'],
    [['complete', 'partial'], 'partial'],
  ] as const)('whose parts end as %j ends as %s, and has the sums of its parts', async (parts, state) => {
    const runId = randomUUID();
    await startRun(warehouse.db, { runId, companyId: null, resource: null });
    for (const [at, part] of parts.entries()) {
      const key = { runId, companyId: company.id, resource: `part ${at}` };
      await startRun(warehouse.db, key);
      const counts = { pages: 1, passes: 1, reportedTotal: 9, distinctIds: 9, inserted: 2, changed: 3 };
      await finishRun(warehouse.db, key, part, {
        counts: { ...counts, unchanged: 4, tombstoned: 1, rejected: 0 },
        ...(part === 'complete' ? {} : { error: `why ${part}` }),
      });
    }
    expect(await concludeRun(warehouse.db, runId)).toBe(state);
    const [run] = (
      await warehouse.db.execute(sql`select rows_inserted::int as inserted, pages, error, finished_at is not null as over
        from metersync.runs where run_id = ${runId}::uuid and company_id is null`)
    ).rows;
    const reasons = [...new Set(parts.filter((part) => part !== 'complete'))].map((part) => `why ${part}`);
    expect(run).toEqual({
      inserted: 2 * parts.length,
      pages: parts.length,
      error: reasons.length === 0 ? null : expect.stringContaining(reasons[0] ?? ''),
      over: true,
    });
  });
});
