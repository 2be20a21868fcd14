import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import { pino } from 'pino';
import { expect, test } from 'vitest';
import { openService } from '../../app/service.ts';
import { readSettings } from '../../app/settings/settings.ts';
import { createFieldCatalogue } from '../../db/fields/field-catalogue.ts';
import { applyTypedViews } from '../../db/fields/typed-views.ts';
import { missingValues } from '../db/fields/missing-values.ts';
import { activitiesAlone, activityEnvironment } from '../support/activities.ts';
import { forFile } from '../support/for-file.ts';
import { startSandbox } from '../support/sandbox.ts';
import { createWarehouse } from '../support/warehouse.ts';

const [service, warehouse] = await Promise.all([
  forFile(startSandbox({ companies: 2, documents: 8, intervalDays: 0 })),
  forFile(createWarehouse()),
]);

const rows = async (statement: string) => (await warehouse.db.execute(sql.raw(statement))).rows;

const run = async <I, O>(activity: (input: I) => Promise<O>, input: I): Promise<O> =>
  await activityEnvironment().run(activity, input);

/** Backfills companies as a worker whose SERVICE_URL ends in the version. */
async function backfill(version: string, companies?: readonly string[]): Promise<void> {
  const log = pino({ level: 'silent' });
  const url = service.apiUrl.replace(/[^/]+$/, version);
  const settings = readSettings({ SERVICE_MAX_CONCURRENCY: '4' });
  const { client, apiVersion } = openService(settings, url, service.apiKey, log);
  const catalogue = createFieldCatalogue({
    db: warehouse.db,
    onError: (error) => {
      throw error;
    },
  });
  const { beginRun, readCompany } = activitiesAlone(warehouse, catalogue, { service: client, apiVersion });
  try {
    const runId = randomUUID();
    await run(beginRun, { runId, kind: 'full' });
    const all = (await rows(`select id from utility.companies`)).map(({ id }) => String(id));
    for (const companyId of companies ?? all) await run(readCompany, { runId, companyId });
    await applyTypedViews(warehouse.db);
  } finally {
    await client.close();
  }
}

test('a backfill after a change of version fills the new columns, and rows name their version', async () => {
  const versions = () =>
    rows(`select api_version, count(*)::int as documents from fields.documents group by 1 order by 1`);
  const columns = async () =>
    (
      await rows(
        `select attname from pg_attribute where attrelid = 'fields.documents'::regclass and attnum > 0`,
      )
    ).map(({ attname }) => attname);
  await backfill('v2');
  expect(await versions()).toEqual([{ api_version: 'v2', documents: 16 }]);
  const before = await columns();
  expect(before).toContain('total_charges');
  expect(before).not.toContain('start_date');

  const [{ id } = {}] = await rows(`select id from utility.companies order by id limit 1`);
  await backfill('v2.2', [String(id)]);
  expect(await versions()).toEqual([
    { api_version: 'v2', documents: 8 },
    { api_version: 'v2.2', documents: 8 },
  ]);
  expect((await columns()).slice(0, before.length)).toEqual(before);
  expect(
    await rows(`select distinct api_version, start_date is null as empty from fields.documents order by 1`),
  ).toEqual([
    { api_version: 'v2', empty: true },
    { api_version: 'v2.2', empty: false },
  ]);

  await backfill('v2.2');
  expect(await versions()).toEqual([{ api_version: 'v2.2', documents: 16 }]);
  expect(await rows(`select count(*)::int as empty from fields.documents where start_date is null`)).toEqual([
    { empty: 0 },
  ]);
  expect(await rows(`select distinct api_version from history.documents`)).toEqual([{ api_version: 'v2' }]);
  expect(
    await rows(`select api_version from ops.field_catalogue
      where resource = 'documents' and path = '/startDate'`),
  ).toEqual([{ api_version: 'v2.2' }]);
  expect(await missingValues(warehouse, 'documents')).toEqual([]);
});
