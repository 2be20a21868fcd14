import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import { expect, test } from 'vitest';
import { companyResources } from '../../contract/endpoints.ts';
import { failedParts } from '../../db/backfill/runs.ts';
import { pageOf } from '../service/listing.ts';
import type { Asked, Reply } from '../service/scripted-server.ts';
import { rejection } from '../service/setup.ts';
import { type ActivitiesUnderTest, activitiesOn } from '../support/activities.ts';

/** Makes a service whose key is revoked after the given number of requests. */
function revokedAfter(requests: number) {
  let refused = 0;
  const script = (asked: Asked): Reply => {
    if (asked.number > requests) {
      refused += 1;
      return { status: 401, json: { detail: 'no' } };
    }
    const [, , resource = ''] = asked.path.split('/');
    if (resource === 'company') return { json: [] };
    const key = resource === 'usage' ? 'usageData' : `${resource}s`;
    return pageOf([], asked, { key, total: `total${key[0]?.toUpperCase()}${key.slice(1)}` });
  };
  return { script, refused: () => refused };
}

const parts = async ({ warehouse }: ActivitiesUnderTest, runId: string) =>
  (
    await warehouse.db.execute<{ resource: string | null; state: string; error_code: string | null }>(
      sql`select resource, state, error_code from metersync.runs where run_id = ${runId}::uuid order by started_at`,
    )
  ).rows;
const refusedCode = 'SERVICE_KEY_REFUSED';

test('a key that is refused at the start of a run leaves nothing of the run running', async () => {
  const { script, refused } = revokedAfter(0);
  const under = await activitiesOn(script);
  const { activities, run, warehouse } = under;
  const runId = randomUUID();
  const error = await rejection(run(activities.beginRun, { runId, kind: 'full' }));
  expect(error).toMatchObject({ type: refusedCode, nonRetryable: true });
  // The workflow does the same.
  const reason = `${refusedCode}: ${(error as Error).message}`;
  await run(activities.failRun, { runId, kind: 'full', error: reason });
  expect(await parts(under, runId)).toEqual([
    { resource: null, state: 'failed', error_code: refusedCode },
    { resource: 'companies', state: 'failed', error_code: refusedCode },
  ]);
  expect(refused()).toBe(1);
  expect(await failedParts(warehouse.db, [refusedCode])).toEqual({ companies: [], everything: true });
});

test('a key that is revoked during a run costs one request per company, and each unread part has the reason', async () => {
  // The two requests are for the list of companies and for the connections of the first company.
  const { script, refused } = revokedAfter(2);
  const under = await activitiesOn(script);
  const { activities, run, warehouse } = under;
  const runId = randomUUID();
  const companies = [randomUUID(), randomUUID(), randomUUID()];
  await run(activities.beginRun, { runId, kind: 'full' });
  for (const id of companies)
    await warehouse.db.execute(sql`insert into utility.companies (id) values (${id})`);
  for (const companyId of companies) await run(activities.readCompany, { runId, companyId });
  expect(refused()).toBe(companies.length);
  const states = (await parts(under, runId)).filter(({ resource }) => resource !== null);
  expect(states.filter(({ state }) => state === 'complete').map(({ resource }) => resource)).toEqual([
    'companies',
    'connections',
  ]);
  const failed = states.filter(({ error_code }) => error_code === refusedCode);
  expect(failed).toHaveLength(companies.length * companyResources.length - 1);

  expect(await run(activities.concludeRun, { runId })).toBe('partial');
  expect((await parts(under, runId)).find(({ resource }) => resource === null)).toEqual({
    resource: null,
    state: 'partial',
    error_code: refusedCode,
  });
  const again = await failedParts(warehouse.db, [refusedCode]);
  expect({ ...again, companies: again.companies.toSorted() }).toEqual({
    companies: companies.toSorted(),
    everything: false,
  });
});

test('parts that are still running when their run fails become failed', async () => {
  const under = await activitiesOn(revokedAfter(100).script);
  const { activities, run, warehouse } = under;
  const runId = randomUUID();
  await run(activities.beginRun, { runId, kind: 'full' });
  await warehouse.db.execute(sql`insert into metersync.runs (run_id, company_id, resource, state)
    values (${runId}::uuid, ${randomUUID()}::uuid, 'meters', 'running')`);
  expect(await run(activities.concludeRun, { runId })).toBe('failed');
  expect((await parts(under, runId)).find(({ resource }) => resource === 'meters')).toMatchObject({
    state: 'failed',
  });
});
