import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { CompanyLeft } from '../../activities/backfill/slice.ts';
import type { EndpointCatalogue } from '../../contract/endpoints.ts';
import { attemptPolicy, requestPolicy } from '../../contract/retry-policy.ts';
import { pageOf } from '../service/listing.ts';
import type { Asked, Reply } from '../service/scripted-server.ts';
import { type ActivitiesUnderTest, activitiesOn, activityEnvironment } from '../support/activities.ts';
import { cases } from '../support/cases.ts';
import { documents } from '../support/scripted-service.ts';
import { statementsTo } from '../support/statements-sent.ts';

const documentsAlone = { connections: null, meters: null, usageData: null, intervals: null };
const failure: Reply = { status: 500, json: { detail: 'not now' } };
const left = (...ids: readonly string[]): CompanyLeft[] =>
  ids.map((companyId) => ({ companyId, cursor: null }));
const companyOf = ({ path }: Pick<Asked, 'path'>): string => path.split('/').at(-1) ?? '';

/** Makes a service of companies with these numbers of documents. Replies of `meanwhile` replace its own. */
async function companiesOf(
  counts: readonly number[],
  meanwhile: (companyId: string, asked: Asked) => Reply | undefined | Promise<Reply | undefined> = () =>
    undefined,
  endpoints: Partial<EndpointCatalogue> = documentsAlone,
) {
  let at = 0;
  const held = new Map<string, object[]>(counts.map((count) => [randomUUID(), documents(count)]));
  const under = await activitiesOn(
    async (asked) => {
      const companyId = companyOf(asked);
      return (await meanwhile(companyId, asked)) ?? pageOf(held.get(companyId) ?? [], asked);
    },
    endpoints,
    { now: () => at },
  );
  const fill = (): void => {
    at += attemptPolicy.sliceMs + 1;
  };
  return { under, ids: [...held.keys()], fill };
}

async function partsOf({ warehouse }: ActivitiesUnderTest, runId: string) {
  const { rows } = await warehouse.db.execute<{ company: string; parts: string[]; documents: number }>(sql`
    select company_id as company, array_agg(resource || ' ' || state order by resource) as parts,
      (select count(*)::int from utility.documents d where d.company_id = r.company_id) as documents
    from metersync.runs r where run_id = ${runId}::uuid group by company_id`);
  return new Map(rows.map(({ company, ...row }) => [company, row]));
}
const done = { done: true, cursor: null };
const asked = ({ asked: all }: ActivitiesUnderTest, companyId: string) =>
  all().filter((path) => path.includes(companyId)).length;

const resources = ['connections', 'documents', 'intervals', 'meters', 'usageData'];
const complete = resources.map((resource) => `${resource} complete`);

describe('companies of a slice', () => {
  test('cost eight statements each', async () => {
    const { under, ids } = await companiesOf(Array(20).fill(5));
    const { url } = under.warehouse;
    const read = async (): Promise<number> => {
      const before = await statementsTo(url);
      const input = { runId: randomUUID(), companies: ids };
      expect(await under.run(under.activities.readCompanies, input)).toEqual({ left: [], rest: [] });
      return (await statementsTo(url)) - before;
    };
    // New fields of the catalogue cost a few more statements.
    const few = 5;
    expect(await read()).toBeLessThanOrEqual(20 * 8 + few);
    expect(await read()).toBeLessThanOrEqual(20 * 8 + few);
  });

  test('are read one by one, each with its own parts, until the slice is full', async () => {
    let last = '';
    const slice = await companiesOf([5, 0, 250, 1, 1], (companyId) => {
      if (companyId === last) slice.fill();
      return undefined;
    });
    const { under, ids } = slice;
    const [small, empty, long, ...rest] = ids as [string, string, string, ...string[]];
    last = long;
    const runId = randomUUID();
    const step = await under.run(under.activities.readCompanies, { runId, companies: ids });
    expect(step).toEqual({ left: [], rest });
    const parts = await partsOf(under, runId);
    expect(parts.get(small)).toEqual({ parts: complete, documents: 5 });
    expect(parts.get(empty)).toEqual({ parts: complete, documents: 0 });
    expect(parts.get(long)).toEqual({ parts: complete, documents: 250 });
    expect([small, empty, long, ...rest].map((id) => asked(under, id))).toEqual([1, 1, 3, 0, 0]);
  });

  test('end with a company whose meters fill the slice, and its own workflow goes on behind the last meter', async () => {
    const readings = (asked: Asked): Reply => {
      if (asked.path.endsWith('m-1')) slice.fill();
      return pageOf([], asked, { key: 'intervals', total: 'totalIntervals', perPage: 10 });
    };
    const slice = await companiesOf(
      [1, 1],
      (_, asked) => (asked.path.includes('/interval/') ? readings(asked) : undefined),
      { connections: null, meters: null, usageData: null },
    );
    const { under, ids } = slice;
    const [metered, other] = ids as [string, string];
    await under.warehouse.db.execute(sql`
      insert into utility.meters (id, company_id) values ('m-1', ${metered}::uuid), ('m-2', ${metered}::uuid)`);
    const runId = randomUUID();
    const { left, rest } = await under.run(under.activities.readCompanies, { runId, companies: ids });
    expect({ left, rest }).toMatchObject({
      left: [{ companyId: metered, cursor: { resource: 'intervals', after: 'm-1' } }],
      rest: [other],
    });
    // The part is not shown as running, because another run may read the company meanwhile.
    expect((await partsOf(under, runId)).get(metered)?.parts).not.toContain('intervals running');
    const [goesOn] = left as [CompanyLeft];
    expect(await under.run(under.activities.readCompany, { runId, ...goesOn })).toEqual(done);
    expect((await partsOf(under, runId)).get(metered)).toEqual({ parts: complete, documents: 1 });
    expect(under.asked().filter((path) => path.startsWith('/interval/'))).toHaveLength(2);
  });

  test('wait while another run that is under way reads them, but not for a run that has ended', async () => {
    const { under, ids } = await companiesOf([1, 1]);
    const [busy, free] = ids as [string, string];
    const { db } = under.warehouse;
    const other = randomUUID();
    await db.execute(sql`insert into metersync.runs (run_id, company_id, resource, state, started_at)
      values (${other}::uuid, ${busy}::uuid, 'documents', 'running', now() - interval '5 hours'),
        (${other}::uuid, null, null, 'running', now() - interval '5 hours')`);
    const runId = randomUUID();
    const slice = () => under.run(under.activities.readCompanies, { runId, companies: ids });
    const single = () => under.run(under.activities.readCompany, { runId, companyId: busy, cursor: null });
    expect(await slice()).toEqual({ left: left(busy), rest: [] });
    await expect(single()).rejects.toMatchObject({ type: 'COMPANY_BUSY', nonRetryable: false });
    expect([asked(under, busy), asked(under, free)]).toEqual([0, 1]);

    await db.execute(sql`update metersync.runs set finished_at = now() where company_id is null`);
    expect(await single()).toEqual(done);
    expect([...(await partsOf(under, runId)).keys()].sort()).toEqual([...ids].sort());
  });

  test('do not wait for one another when two runs have begun the same company', async () => {
    const { under, ids } = await companiesOf([1]);
    const [companyId] = ids as [string];
    const [one, two] = [randomUUID(), randomUUID()];
    for (const runId of [one, two])
      await under.warehouse.db.execute(sql`insert into metersync.runs (run_id, company_id, resource, state)
        values (${runId}::uuid, ${companyId}::uuid, 'documents', 'running'),
          (${runId}::uuid, null, null, 'running')`);
    for (const runId of [one, two])
      expect(await under.run(under.activities.readCompany, { runId, companyId, cursor: null })).toEqual(done);
  });

  test('end with a company that fails, and its own workflow goes on at the page that failed', async () => {
    let fails = '';
    let failing = true;
    const { under, ids } = await companiesOf([1, 350, 1, 1], (companyId, { query }) =>
      failing && companyId === fails && query.get('page') === '3' ? failure : undefined,
    );
    const [before, failed, ...rest] = ids as [string, string, ...string[]];
    fails = failed;
    const runId = randomUUID();
    const step = await under.run(under.activities.readCompanies, { runId, companies: ids });
    const cursor = { companyId: failed, resource: 'documents', pass: 1, page: 2 };
    expect(step).toMatchObject({ left: [{ companyId: failed, cursor }], rest });
    const parts = await partsOf(under, runId);
    expect(parts.get(before)?.parts).toEqual(complete);
    expect(parts.get(failed)?.parts.filter((part) => part.startsWith('documents'))).toEqual([]);
    expect([asked(under, failed), ...rest.map((id) => asked(under, id))]).toEqual([
      2 + requestPolicy.attemptsMax,
      0,
      0,
    ]);

    failing = false;
    const [goesOn] = step.left as [CompanyLeft];
    expect(await under.run(under.activities.readCompany, { runId, ...goesOn })).toEqual(done);
    expect((await partsOf(under, runId)).get(failed)).toEqual({ parts: complete, documents: 350 });
    expect(asked(under, failed)).toBe(2 + requestPolicy.attemptsMax + 2);
  });

  test('fail without affecting other companies when the service refuses them, and are not left for later', async () => {
    let refused = '';
    const { under, ids } = await companiesOf([1, 1, 1], (companyId) =>
      companyId === refused ? { status: 403, json: { detail: 'not yours' } } : undefined,
    );
    refused = ids[1] as string;
    // The service has listed this company before.
    await under.warehouse.db.execute(sql`insert into utility.companies (id, raw) values (${refused}, '{}')`);
    const runId = randomUUID();
    expect(await under.run(under.activities.readCompanies, { runId, companies: ids })).toEqual({
      left: [],
      rest: [],
    });
    const parts = await partsOf(under, runId);
    expect(parts.get(refused)?.parts).toContain('documents failed');
    expect([parts.get(ids[0] ?? '')?.parts, parts.get(ids[2] ?? '')?.parts]).toEqual([complete, complete]);
  });

  test('stop when their run is cancelled, and companies that were read stay complete', async () => {
    const environment = activityEnvironment();
    let cancelAt = '';
    const { under, ids } = await companiesOf([1, 150, 1], async (companyId) => {
      if (companyId === cancelAt) environment.cancel();
      return undefined;
    });
    cancelAt = ids[1] as string;
    const runId = randomUUID();
    const reading = environment.run(under.activities.readCompanies, { runId, companies: ids });
    await expect(reading).rejects.toMatchObject({ name: 'CancelledFailure' });
    const parts = await partsOf(under, runId);
    expect(parts.get(ids[0] ?? '')).toEqual({ parts: complete, documents: 1 });
    expect(parts.get(cancelAt)?.documents).toBe(0);
    expect(asked(under, ids[2] ?? '')).toBe(0);
  });
});

test('after any crashes of the worker, each company is read completely and never with the cursor of another company', async () => {
  let ends = (): void => {};
  const sizes = [30, 250, 120, 310];
  const { under, ids } = await companiesOf(sizes, () => {
    ends();
    return undefined;
  });
  const { db } = under.warehouse;
  const end = fc.record({ atRequest: fc.integer({ min: 1, max: 12 }), cursorIsLost: fc.boolean() });
  await fc.assert(
    fc.asyncProperty(fc.array(end, { maxLength: 4 }), async (workers) => {
      await db.execute(sql`truncate utility.documents, metersync.runs, metersync.pages`);
      const input = { runId: randomUUID(), companies: ids };
      let details: unknown;
      for (const { atRequest, cursorIsLost } of workers) {
        const environment = activityEnvironment(details);
        const heartbeats: unknown[] = [];
        environment.on('heartbeat', (details) => heartbeats.push(details));
        let requests = 0;
        ends = () => {
          requests += 1;
          if (requests === atRequest) environment.cancel();
        };
        await environment.run(under.activities.readCompanies, input).catch(() => {});
        details = heartbeats.at(cursorIsLost ? -2 : -1) ?? details;
      }
      ends = () => {};
      expect(await under.run(under.activities.readCompanies, input, details)).toEqual({ left: [], rest: [] });
      const parts = await partsOf(under, input.runId);
      expect(ids.map((id) => parts.get(id))).toEqual(
        sizes.map((size) => ({ parts: complete, documents: size })),
      );
      expect((await db.execute(sql`select from metersync.pages`)).rowCount).toBe(0);
    }),
    { numRuns: cases(5, 12) },
  );
}, 60_000);
