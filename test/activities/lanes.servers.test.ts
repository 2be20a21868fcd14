import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { EndpointCatalogue } from '../../contract/endpoints.ts';
import { backfillBounds } from '../../contract/limits.ts';
import { attemptPolicy, requestPolicy } from '../../contract/retry-policy.ts';
import { pageOf } from '../service/listing.ts';
import type { Asked, Reply } from '../service/scripted-server.ts';
import { type ActivitiesUnderTest, activitiesOn, activityEnvironment } from '../support/activities.ts';
import { cases } from '../support/cases.ts';
import { until } from '../support/poll.ts';
import { documents } from '../support/scripted-service.ts';
import { statementsTo } from '../support/statements-sent.ts';

const documentsAlone = { connections: null, meters: null, usageData: null, intervals: null };
const failure: Reply = { status: 500, json: { detail: 'not now' } };
const companyOf = ({ path }: Pick<Asked, 'path'>): string => path.split('/').at(-1) ?? '';

/** Makes a service of companies with these numbers of documents. Replies of `meanwhile` replace its own. */
async function companiesOf(
  counts: readonly number[],
  meanwhile: (companyId: string, asked: Asked) => Reply | undefined | Promise<Reply | undefined> = () =>
    undefined,
  endpoints: Partial<EndpointCatalogue> = documentsAlone,
) {
  const held = new Map<string, object[]>(
    counts
      .map((count) => [randomUUID(), documents(count)] as [string, object[]])
      .sort(([one], [other]) => (one < other ? -1 : 1)),
  );
  const under = await activitiesOn(async (asked) => {
    if (asked.path.endsWith('/company')) return { json: [...held.keys()].map((id) => ({ id })) };
    const companyId = companyOf(asked);
    return (await meanwhile(companyId, asked)) ?? pageOf(held.get(companyId) ?? [], asked);
  }, endpoints);
  /** Begins a run of all companies; returns the input of a lane. */
  const begin = async (lane = 0) => {
    const runId = randomUUID();
    const run = await under.run(under.activities.beginRun, { runId, kind: 'full' });
    return { runId, kind: 'full', lane, ...run } as const;
  };
  return { under, ids: [...held.keys()], sizes: [...held.values()].map(({ length }) => length), begin };
}

async function partsOf({ warehouse }: ActivitiesUnderTest, runId: string) {
  const { rows } = await warehouse.db.execute<{ company: string; parts: string[]; documents: number }>(sql`
    select company_id as company, array_agg(resource || ' ' || state order by resource) as parts,
      (select count(*)::int from utility.documents d where d.company_id = r.company_id) as documents
    from metersync.runs r where run_id = ${runId}::uuid and company_id is not null group by company_id`);
  return new Map(rows.map(({ company, ...row }) => [company, row]));
}
const asked = ({ asked: all }: ActivitiesUnderTest, companyId: string) =>
  all().filter((path) => path.includes(companyId)).length;

/** The pages asked for of a company, without the first, which a probe of the service may ask for, too. */
const laterPages = ({ asked: all }: ActivitiesUnderTest, companyId: string): number[] =>
  all()
    .filter((path) => path.includes(companyId))
    .map((path) => Number(/page=(\d+)/.exec(path)?.[1]))
    .filter((page) => page > 1);

const resources = ['connections', 'documents', 'intervals', 'meters', 'usageData'];
const complete = resources.map((resource) => `${resource} complete`);

describe('companies of a run', () => {
  test('cost eleven statements each if their records are new, and ten if nothing changed', async () => {
    const { under, begin } = await companiesOf(Array(20).fill(5));
    const { url } = under.warehouse;
    const read = async (): Promise<number> => {
      const lane = await begin();
      const before = await statementsTo(url);
      await under.run(under.activities.readCompanies, lane);
      return (await statementsTo(url)) - before;
    };
    // New fields of the catalogue cost a few more statements.
    const few = 5;
    expect(await read()).toBeLessThanOrEqual(20 * 11 + few);
    expect(await read()).toBeLessThanOrEqual(20 * 10 + few);
  });

  test('are each read by one of the lanes, and a large one delays no other', async () => {
    let large = '';
    let others = (): void => {};
    const allOthers = new Promise<void>((resolve) => {
      others = resolve;
    });
    const service = await companiesOf([3, 1, 2, 1, 4, 1, 1, 1, 2, 1, 1], async (companyId) => {
      if (companyId === large) await allOthers;
      return undefined;
    });
    const { under, ids, sizes, begin } = service;
    large = ids[0] as string;
    const lane = await begin();
    expect(lane.lanes).toBe(backfillBounds.companiesAtOnce);
    const all = Promise.all(
      Array.from({ length: lane.lanes }, (_, number) =>
        under.run(under.activities.readCompanies, { ...lane, lane: number }),
      ),
    );
    await until('all others are read', async () => {
      const parts = await partsOf(under, lane.runId);
      return ids.every((id) => id === large || parts.get(id)?.parts.join() === complete.join());
    });
    others();
    await all;
    const parts = await partsOf(under, lane.runId);
    expect(ids.map((id) => parts.get(id))).toEqual(
      sizes.map((size) => ({ parts: complete, documents: size })),
    );
    expect(ids.map((id) => asked(under, id))).toEqual(ids.map(() => 1));
    await under.run(under.activities.concludeRun, lane);
    expect((await under.warehouse.db.execute(sql`select from metersync.run_lanes`)).rowCount).toBe(0);
  });

  test('are at most those of the run: the lanes of an ended run take no other', async () => {
    const { under, ids, begin } = await companiesOf([1, 1]);
    const lane = await begin();
    await under.run(under.activities.failRun, { runId: lane.runId, kind: 'full', error: 'terminated' });
    await under.run(under.activities.readCompanies, lane);
    expect(ids.map((id) => asked(under, id))).toEqual([0, 0]);
  });

  test('continue at the page that failed', async () => {
    let fails = '';
    let failing = true;
    const { under, ids, sizes, begin } = await companiesOf([1, 350, 1, 1], (companyId, { query }) =>
      failing && companyId === fails && query.get('page') === '3' ? failure : undefined,
    );
    fails = ids[sizes.indexOf(350)] as string;
    const lane = await begin();
    const environment = activityEnvironment();
    let details: { cursor: unknown } | undefined;
    environment.on('heartbeat', (sent: typeof details) => {
      details = sent;
    });
    const first = environment.run(under.activities.readCompanies, lane);
    await expect(first).rejects.toMatchObject({ type: 'SERVICE_ERROR' });
    expect(details?.cursor).toMatchObject({ companyId: fails, resource: 'documents', pass: 1, page: 2 });
    const tried = Array(requestPolicy.attemptsMax).fill(3);
    expect(laterPages(under, fails)).toEqual([2, ...tried]);

    failing = false;
    await under.run(under.activities.readCompanies, lane, details?.cursor, 2);
    const parts = await partsOf(under, lane.runId);
    expect(ids.map((id) => parts.get(id)?.parts)).toEqual(ids.map(() => complete));
    expect(laterPages(under, fails)).toEqual([2, ...tried, 3, 4]);
  });

  test('fail by name after all tries of a resource, while the others are read', async () => {
    let refused = '';
    const { under, ids, begin } = await companiesOf([1, 1, 1], (companyId) =>
      companyId === refused ? failure : undefined,
    );
    refused = ids[1] as string;
    const lane = await begin();
    const read = (attempt: number) => under.run(under.activities.readCompanies, lane, undefined, attempt);
    const last = attemptPolicy.triesOfPart.full;
    await expect(read(last - 1)).rejects.toMatchObject({ type: 'SERVICE_ERROR' });
    await read(last);
    const parts = await partsOf(under, lane.runId);
    expect(parts.get(refused)?.parts).toContain('documents failed');
    expect(ids.filter((id) => id !== refused).map((id) => parts.get(id)?.parts)).toEqual([
      complete,
      complete,
    ]);
  });

  test('are all read if a worker that lost Temporal goes on next to the worker that replaced it', async () => {
    let lost = '';
    const gone = new AbortController();
    const { under, ids, sizes, begin } = await companiesOf([1, 1, 1, 1], async (companyId) => {
      if (companyId === lost) await new Promise((resolve) => gone.signal.addEventListener('abort', resolve));
      return undefined;
    });
    lost = ids[1] as string;
    const lane = await begin();
    const environment = activityEnvironment();
    const frozen = environment.run(under.activities.readCompanies, lane).catch(() => {});
    await until('the second company is asked for', async () => asked(under, lost) === 1);
    // The lost worker took this company; its reads never come back. The other worker takes the rest.
    const replaced = under.run(under.activities.readCompanies, lane, undefined, 2);
    await until('the other worker asks for it, too', async () => asked(under, lost) === 2);
    environment.cancel();
    await frozen;
    gone.abort();
    await replaced;
    const parts = await partsOf(under, lane.runId);
    expect(ids.map((id) => parts.get(id))).toEqual(
      sizes.map((size) => ({ parts: complete, documents: size })),
    );
    const { rowCount } = await under.warehouse.db.execute(sql`select from metersync.run_lanes`);
    expect(rowCount).toBe(0);
  });

  test('fail by name if each worker that read them ended', async () => {
    const { under, ids, begin } = await companiesOf([1, 1]);
    const lane = await begin();
    const [first = ''] = ids;
    await under.warehouse.db.execute(sql`
      insert into metersync.run_lanes (run_id, company_id, lane)
      values (${lane.runId}, ${first}, 0)`);
    await under.warehouse.db.execute(sql`
      update metersync.runs set claimed_to = ${first}
      where run_id = ${lane.runId} and resource is null`);
    await under.run(under.activities.readCompanies, lane, undefined, attemptPolicy.triesOfPart.full + 1);
    const { rows } = await under.warehouse.db.execute(sql`
      select company_id, error from metersync.runs where run_id = ${lane.runId} and state = 'failed'`);
    expect(rows).toEqual([{ company_id: first, error: 'each worker that read it ended' }]);
    expect((await partsOf(under, lane.runId)).get(ids[1] ?? '')?.parts).toEqual(complete);
  });

  test('fail without affecting other companies when the service refuses them', async () => {
    let refused = '';
    const { under, ids, begin } = await companiesOf([1, 1, 1], (companyId) =>
      companyId === refused ? { status: 403, json: { detail: 'not yours' } } : undefined,
    );
    refused = ids[1] as string;
    const lane = await begin();
    await under.run(under.activities.readCompanies, lane);
    const parts = await partsOf(under, lane.runId);
    expect(parts.get(refused)?.parts).toContain('documents failed');
    expect([parts.get(ids[0] ?? '')?.parts, parts.get(ids[2] ?? '')?.parts]).toEqual([complete, complete]);
  });

  test('stop when their run is cancelled, and companies that were read stay complete', async () => {
    const environment = activityEnvironment();
    let cancelAt = '';
    const { under, ids, begin } = await companiesOf([1, 1, 1], async (companyId) => {
      if (companyId === cancelAt) environment.cancel();
      return undefined;
    });
    cancelAt = ids[1] as string;
    const lane = await begin();
    const reading = environment.run(under.activities.readCompanies, lane);
    await expect(reading).rejects.toMatchObject({ name: 'CancelledFailure' });
    const parts = await partsOf(under, lane.runId);
    expect(parts.get(ids[0] ?? '')).toEqual({ parts: complete, documents: 1 });
    expect(parts.get(cancelAt)?.documents).toBe(0);
    expect(asked(under, ids[2] ?? '')).toBe(0);
  });
});

test('after any crashes of the worker, each company is read completely and never with the cursor of another company', async () => {
  let ends = (): void => {};
  const { under, ids, sizes, begin } = await companiesOf([30, 250, 120, 310], () => {
    ends();
    return undefined;
  });
  const { db } = under.warehouse;
  const end = fc.record({ atRequest: fc.integer({ min: 1, max: 12 }), cursorIsLost: fc.boolean() });
  await fc.assert(
    fc.asyncProperty(fc.array(end, { maxLength: 4 }), async (workers) => {
      await db.execute(sql`truncate utility.documents, metersync.runs, metersync.pages, metersync.run_lanes`);
      const lane = await begin();
      let details: { cursor: unknown } | undefined;
      for (const [at, { atRequest, cursorIsLost }] of workers.entries()) {
        const environment = activityEnvironment(details?.cursor, at + 1);
        const heartbeats: unknown[] = [];
        environment.on('heartbeat', (details) => heartbeats.push(details));
        let requests = 0;
        ends = () => {
          requests += 1;
          if (requests === atRequest) environment.cancel();
        };
        await environment.run(under.activities.readCompanies, lane).catch(() => {});
        details = (heartbeats.at(cursorIsLost ? -2 : -1) as { cursor: unknown } | undefined) ?? details;
      }
      ends = () => {};
      await under.run(under.activities.readCompanies, lane, details?.cursor, workers.length + 1);
      const parts = await partsOf(under, lane.runId);
      expect(ids.map((id) => parts.get(id))).toEqual(
        sizes.map((size) => ({ parts: complete, documents: size })),
      );
      expect((await db.execute(sql`select from metersync.pages`)).rowCount).toBe(0);
    }),
    { numRuns: cases(5, 12) },
  );
}, 60_000);
