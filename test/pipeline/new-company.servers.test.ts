import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import { expect, test } from 'vitest';
import { deliver } from '../support/deliver.ts';
import { documentEvent } from '../support/events.ts';
import { startPipeline } from '../support/pipeline.ts';
import { until } from '../support/poll.ts';

test('the first event of a company makes it read; forged companies leave nothing', {
  timeout: 180_000,
}, async () => {
  const pipeline = await startPipeline({ size: { companies: 1, documents: 3, intervalDays: 1 } });
  try {
    const { service, warehouse } = pipeline;
    expect(await pipeline.backfill()).toBe('complete');
    const [companyId] = await service.change({ type: 'createCompany', name: 'Newcomer' });
    await service.change({ type: 'createConnection', companyId });
    await pipeline.settled();
    const runs = await warehouse.db.execute(sql`
      select distinct run_id, state from metersync.runs where company_id = ${companyId}::uuid`);
    expect(runs.rows).toEqual([{ run_id: companyId, state: 'complete' }]);
    expect(await pipeline.audit()).toMatchObject({ differences: 0 });

    for (let forged = 0; forged < 20; forged++) {
      const company = { id: randomUUID(), name: 'Forged', externalId: 'x', publicId: randomUUID() };
      const event = documentEvent('created', randomUUID(), '2026-01-01T00:00:00', { company });
      expect((await deliver(pipeline, event)).status).toBe(204);
    }
    await until('the service was asked for all of them', async () => {
      const { rows } = await warehouse.db.execute<{ n: number }>(sql`select count(*)::int as n
        from metersync.events where error_code = 'UNKNOWN_TO_SERVICE'`);
      return rows[0]?.n === 20;
    });
    expect(await pipeline.backfill()).toBe('complete');
    const companies = await warehouse.db.execute(sql`select from utility.companies`);
    expect(companies.rowCount).toBe(2);
    expect(await pipeline.audit()).toMatchObject({ differences: 0 });
  } finally {
    await pipeline.stop();
  }
});
