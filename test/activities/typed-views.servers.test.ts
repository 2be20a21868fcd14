import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import { pino } from 'pino';
import { expect, onTestFinished, test } from 'vitest';
import { startRun } from '../../db/backfill/runs.ts';
import { createFieldCatalogue } from '../../db/fields/field-catalogue.ts';
import type { ServiceClient } from '../../service/client.ts';
import { activitiesAlone, activityEnvironment } from '../support/activities.ts';
import { loginAs } from '../support/login.ts';
import { createWarehouse } from '../support/warehouse.ts';

/** A service without endpoints, of which nothing is requested. */
const service = { service: { has: () => false } as unknown as ServiceClient, apiVersion: 'v2.2' };

test('the end of a full backfill creates columns for new fields', async () => {
  const warehouse = await createWarehouse();
  onTestFinished(() => warehouse.drop());
  const { db } = warehouse;
  const catalogue = createFieldCatalogue({ db, onError: () => {} });
  const lines: { msg: string; level: number }[] = [];
  const log = pino({}, { write: (line) => void lines.push(JSON.parse(line)) });
  const conclude = async (of: Pick<typeof warehouse, 'db'>) => {
    const { concludeRun } = activitiesAlone({ ...warehouse, ...of }, catalogue, { ...service, log });
    const runId = randomUUID();
    await startRun(db, { runId, companyId: null, resource: null }, { kind: 'full' });
    return await activityEnvironment().run(concludeRun, { runId });
  };
  const columns = async () => {
    const { rows } = await db.execute<{ name: string }>(sql`
      select attrelid::regclass || '.' || attname as name from pg_attribute
      where attname in ('amount', 'kind') and attrelid in (select oid from pg_class where relkind = 'v')
        and attrelid::regclass::text like 'fields.%'
      order by 1`);
    return rows.map(({ name }) => name);
  };

  await catalogue.note('documents', 'v2.2', [{ amount: 1, lines: [{ kind: 'A' }] }]);
  // A login that may only write rows can end the run too, and says who has to apply the views.
  expect(await conclude(await loginAs('metersync_writer', warehouse))).toBe('complete');
  expect(lines).toMatchObject([{ msg: expect.stringContaining('run metersync views apply as the owner') }]);
  expect(await columns()).toEqual([]);
  expect(await conclude(warehouse)).toBe('complete');
  expect(await columns()).toEqual(['fields.documents.amount', 'fields.documents_lines.kind']);
});
