import { sql } from 'drizzle-orm';
import { describe, expect, onTestFinished, test } from 'vitest';
import { pageOf } from '../service/listing.ts';
import { cases } from '../support/cases.ts';
import { createDeployment, type Endpoints } from '../support/deployment.ts';
import { startPipeline } from '../support/pipeline.ts';
import { documents, startScriptedService } from '../support/scripted-service.ts';

describe('a service that lacks endpoints', () => {
  test.each<[string, Endpoints]>([
    ['no document by its id, and none for its usage', { document: null, documentUsage: null }],
    ['no usage of a document, and no list of companies', { documentUsage: null, companies: null }],
  ])('converges without %s', async (_, endpoints) => {
    const pipeline = await startPipeline({
      size: { companies: 2, documents: 110, intervalDays: 1 },
      endpoints,
    });
    onTestFinished(() => pipeline.stop());
    const { service } = pipeline;
    const companies = (await service.read<{ id: string }[]>('/company')).map(({ id }) => id);
    expect(await pipeline.backfill(endpoints.companies === null ? companies : undefined)).toBe('complete');
    await service.disturb({ duplicate: 0.2, shuffle: true, delayMs: [0, 800] });
    await service.random(cases(60, 120), 11);
    await pipeline.settled();
    expect(await pipeline.audit()).toMatchObject({ differences: 0, examples: [] });
    const live = await pipeline.warehouse.db.execute<{ n: number }>(
      sql`select count(*)::int as n from utility.documents where deleted_at is null`,
    );
    expect(live.rows[0]?.n).toBe((await service.status()).documents);
  });

  test('reads the others and reports the rest as absent if nearly all are missing', async () => {
    const service = await startScriptedService();
    onTestFinished(() => service.stop());
    const held = documents(3);
    const { id } = service.addCompany({ documents: (asked) => pageOf(held, asked) });
    const deployment = await createDeployment({
      env: { SERVICE_URL: service.url, SERVICE_API_KEY: 'key', SERVICE_COMPANIES: id },
      endpoints: {
        companies: null,
        connections: null,
        usageData: null,
        meters: null,
        intervals: null,
        document: null,
        documentUsage: null,
      },
    });
    onTestFinished(() => deployment.stop());
    await deployment.run('worker');
    expect(await deployment.backfill()).toBe('complete');
    const runs = await deployment.warehouse.db.execute(
      sql`select resource, state, rows_inserted::int as inserted, error from metersync.runs
        where resource is not null order by resource`,
    );
    const none = { state: 'complete', inserted: 0, error: expect.stringContaining('no such endpoint') };
    expect(runs.rows).toEqual([
      { ...none, resource: 'companies' },
      { ...none, resource: 'connections' },
      { resource: 'documents', state: 'complete', inserted: 3, error: null },
      { ...none, resource: 'intervals', error: null },
      { ...none, resource: 'meters' },
      { ...none, resource: 'usageData' },
    ]);
    expect(await deployment.audit()).toMatchObject({ compared: 3, differences: 0 });
  });
});
