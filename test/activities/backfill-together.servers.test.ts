import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { CompanyLeft } from '../../activities/backfill/together.ts';
import { requestPolicy } from '../../contract/retry-policy.ts';
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

/** A service with companies of the given numbers of documents. A reply of `meanwhile` replaces its answer. */
async function companiesOf(
  counts: readonly number[],
  meanwhile: (companyId: string, asked: Asked) => Reply | undefined | Promise<Reply | undefined> = () =>
    undefined,
) {
  const held = new Map<string, object[]>(counts.map((count) => [randomUUID(), documents(count)]));
  const under = await activitiesOn(async (asked) => {
    const companyId = companyOf(asked);
    return (await meanwhile(companyId, asked)) ?? pageOf(held.get(companyId) ?? [], asked);
  }, documentsAlone);
  return { under, ids: [...held.keys()] };
}

async function partsOf({ warehouse }: ActivitiesUnderTest, runId: string) {
  const { rows } = await warehouse.db.execute<{ company: string; parts: string[]; documents: number }>(sql`
    select company_id as company, array_agg(resource || ' ' || state order by resource) as parts,
      (select count(*)::int from utility.documents d where d.company_id = r.company_id) as documents
    from metersync.runs r where run_id = ${runId}::uuid group by company_id`);
  return new Map(rows.map(({ company, ...row }) => [company, row]));
}
const asked = ({ asked: all }: ActivitiesUnderTest, companyId: string) =>
  all().filter((path) => path.includes(companyId)).length;

const resources = ['connections', 'documents', 'intervals', 'meters', 'usageData'];
const complete = resources.map((resource) => `${resource} complete`);

describe('companies that one activity reads', () => {
  test('cost eight statements each', async () => {
    const { under, ids } = await companiesOf(Array(20).fill(5));
    const { url } = under.warehouse;
    const read = async (): Promise<number> => {
      const before = await statementsTo(url);
      const input = { runId: randomUUID(), companies: ids };
      expect(await under.run(under.activities.readCompanies, input)).toEqual({ left: [] });
      return (await statementsTo(url)) - before;
    };
    // In addition: the finished parts of the run, and new fields of the catalogue.
    const few = 6;
    expect(await read()).toBeLessThanOrEqual(20 * 8 + few);
    expect(await read()).toBeLessThanOrEqual(20 * 8 + few);
  });

  test('are read one after the other, each with its own parts; a large company costs one request and is left to its own workflow', async () => {
    const { under, ids } = await companiesOf([5, 2_001, 0, 250]);
    const [small, large, empty, more] = ids as [string, string, string, string];
    const runId = randomUUID();
    const step = await under.run(under.activities.readCompanies, { runId, companies: ids });
    expect(step).toEqual({ left: left(large) });
    const parts = await partsOf(under, runId);
    expect(parts.get(small)).toEqual({ parts: complete, documents: 5 });
    expect(parts.get(empty)).toEqual({ parts: complete, documents: 0 });
    expect(parts.get(more)).toEqual({ parts: complete, documents: 250 });
    expect(parts.get(large)?.documents).toBe(0);
    expect(parts.get(large)?.parts).not.toContain('documents running');
    expect([asked(under, small), asked(under, large), asked(under, more)]).toEqual([1, 1, 3]);

    const alone = { runId, companyId: large, cursor: null };
    expect(await under.run(under.activities.readCompany, alone)).toEqual({ done: true, cursor: null });
    expect((await partsOf(under, runId)).get(large)).toEqual({ parts: complete, documents: 2_001 });
  });

  test('are left for later while another run reads them, but not for a run that was killed', async () => {
    const { under, ids } = await companiesOf([1, 1]);
    const [busy, free] = ids as [string, string];
    const { db } = under.warehouse;
    await db.execute(sql`insert into metersync.runs (run_id, company_id, resource, state)
      values (${randomUUID()}::uuid, ${busy}::uuid, 'documents', 'running')`);
    const runId = randomUUID();
    const together = () => under.run(under.activities.readCompanies, { runId, companies: ids });
    const alone = () => under.run(under.activities.readCompany, { runId, companyId: busy, cursor: null });
    expect(await together()).toEqual({ left: left(busy) });
    await expect(alone()).rejects.toMatchObject({ type: 'COMPANY_BUSY', nonRetryable: false });
    expect([asked(under, busy), asked(under, free)]).toEqual([0, 1]);

    await db.execute(
      sql`update metersync.runs set started_at = started_at - interval '2 minutes' where state = 'running'`,
    );
    expect(await alone()).toEqual({ done: true, cursor: null });
    expect([...(await partsOf(under, runId)).keys()].sort()).toEqual([...ids].sort());
  });

  test('are left for later when they fail; after two failures in a row all other companies are, too', async () => {
    const failing = new Set<string>();
    const { under, ids } = await companiesOf(Array(7).fill(1), (companyId) =>
      failing.has(companyId) ? failure : undefined,
    );
    const [one, fails, two, failsToo, failsAgain, unasked, last] = ids as [
      string,
      string,
      string,
      string,
      string,
      string,
      string,
    ];
    for (const id of [fails, failsToo, failsAgain]) failing.add(id);
    const runId = randomUUID();
    const step = await under.run(under.activities.readCompanies, { runId, companies: ids });
    expect(step).toEqual({ left: left(fails, failsToo, failsAgain, unasked, last) });
    const parts = await partsOf(under, runId);
    expect([parts.get(one)?.parts, parts.get(two)?.parts]).toEqual([complete, complete]);
    expect(parts.get(fails)?.parts).not.toContain('documents failed');
    expect([asked(under, fails), asked(under, unasked)]).toEqual([requestPolicy.attemptsMax, 0]);
  });

  test('fail without affecting others when the service refuses them, and are not left for later', async () => {
    let refused = '';
    const { under, ids } = await companiesOf([1, 1, 1], (companyId) =>
      companyId === refused ? { status: 403, json: { detail: 'not yours' } } : undefined,
    );
    refused = ids[1] as string;
    // The service listed it before.
    await under.warehouse.db.execute(sql`insert into utility.companies (id, raw) values (${refused}, '{}')`);
    const runId = randomUUID();
    expect(await under.run(under.activities.readCompanies, { runId, companies: ids })).toEqual({ left: [] });
    const parts = await partsOf(under, runId);
    expect(parts.get(refused)?.parts).toContain('documents failed');
    expect([parts.get(ids[0] ?? '')?.parts, parts.get(ids[2] ?? '')?.parts]).toEqual([complete, complete]);
  });

  test('stop when their run is cancelled: the companies that were read are complete, and no request follows', async () => {
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

test('after any crashes of the worker, each company is read to its end and never with the cursor of another company', async () => {
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
      expect(await under.run(under.activities.readCompanies, input, details)).toEqual({ left: [] });
      const parts = await partsOf(under, input.runId);
      expect(ids.map((id) => parts.get(id))).toEqual(
        sizes.map((size) => ({ parts: complete, documents: size })),
      );
      expect((await db.execute(sql`select from metersync.pages`)).rowCount).toBe(0);
    }),
    { numRuns: cases(5, 12) },
  );
}, 60_000);
