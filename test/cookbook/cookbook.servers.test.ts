import { readFileSync } from 'node:fs';
import { sql } from 'drizzle-orm';
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { refreshDataIssues } from '../../db/checks/check-data.ts';
import { applyTypedViews } from '../../db/fields/typed-views.ts';
import { keepMonths } from '../../db/watch/months.ts';
import { type Pipeline, startPipeline } from '../support/pipeline.ts';
import { answers, type Sandbox } from './answers.ts';
import { plain } from './plain.ts';
import { effective, readSandbox } from './sandbox-data.ts';

const page = readFileSync(new URL('../../docs/guides/cookbook.md', import.meta.url), 'utf8');
const analytics = readFileSync(new URL('../../docs/guides/analytics.md', import.meta.url), 'utf8');
const examples = [...analytics.matchAll(/^```sql\n([\s\S]*?)```/gm)].map(([, example = '']) => example);

const recipes = [...page.matchAll(/^### (.+)\n[\s\S]*?```sql\n([\s\S]*?)```\n/gm)].map(
  ([, question = '', query = '']) => ({ question, query }),
);

let pipeline: Pipeline;
let client: pg.Client;
let sandbox: Sandbox;

beforeAll(async () => {
  const [, seed = '', companies = '', documents = '', intervalDays = '', irregular = ''] =
    /--seed (\d+) --companies (\d+) --documents (\d+) --interval-days (\d+) --irregular (0\.\d+)/.exec(
      page,
    ) ?? [];
  pipeline = await startPipeline({
    size: { companies: Number(companies), documents: Number(documents), intervalDays: Number(intervalDays) },
    sandbox: { seed: Number(seed), irregular: Number(irregular) },
    parts: ['worker'],
  });
  const { service, warehouse } = pipeline;
  expect(await pipeline.backfill()).toBe('complete');
  const before = await readSandbox(service.databaseUrl);
  await correct(before);
  expect(await pipeline.backfill()).toBe('complete');
  expect(await pipeline.audit()).toMatchObject({ differences: 0 });
  sandbox = { before, now: await readSandbox(service.databaseUrl) };

  const setup = /```sql\n(insert[\s\S]*?)```/.exec(page)?.[1] ?? '';
  await warehouse.db.execute(sql.raw(setup));
  await keepMonths(warehouse.db, { budgetSeconds: 60 });
  const known = await warehouse.db.execute<{ id: string }>(sql`select id from utility.companies`);
  await refreshDataIssues(
    warehouse.db,
    known.rows.map(({ id }) => id),
  );
  client = new pg.Client({ connectionString: warehouse.url, types: { getTypeParser: () => String } });
  await client.connect();
}, 180_000);
afterAll(async () => {
  await client?.end();
  await pipeline?.stop();
});

/** Makes one correction in place for each currency, a superseded bill and a deleted one. */
async function correct(data: Sandbox['now']): Promise<void> {
  const bills = effective(data)
    .filter(({ successor }) => successor === null)
    .sort((a, b) => (a.id < b.id ? -1 : 1));
  const [canadian] = bills.filter(({ currency }) => currency === 'CAD');
  const [first, second, third] = bills.filter(({ currency }) => currency === 'USD');
  await pipeline.service.change(
    { type: 'reprocessDocument', documentId: canadian?.id },
    { type: 'reprocessDocument', documentId: first?.id },
    { type: 'supersedeDocument', documentId: second?.id, id: '5a000000-0000-4000-8000-000000000001' },
    { type: 'deleteDocument', documentId: third?.id },
    ...data.connections.slice(0, 2).map(({ id }, at) => ({
      type: 'updateConnection',
      connectionId: id,
      status: ['MFA_TOKEN_EXPIRED', 'WEBSITE_DOWN'][at],
    })),
  );
}

async function ask(query: string): Promise<string[][]> {
  const { rows } = await client.query<(string | null)[]>({ text: query, rowMode: 'array' });
  return rows.map((row) => row.map((cell) => cell ?? ''));
}

const ofEnergyDesk = recipes.filter(({ question }) => question in plain);
const others = recipes.filter(({ question }) => !(question in plain));

test('every question has an independently computed answer', () => {
  expect(ofEnergyDesk.map(({ question }) => question)).toEqual(Object.keys(plain));
  expect(others.map(({ question }) => question)).toEqual(Object.keys(answers));
  expect(page.split('```sql').length - 1).toBe(recipes.length + 1);
});

test.each(others)('$question', async ({ question, query }) => {
  const answer = await ask(query);
  expect(answer.length).toBeGreaterThan(0);
  expect(answer).toEqual(answers[question]?.(sandbox));
});

/** Amounts are equal within a cent for each thousand: a month's share of a bill is rounded. */
const isNear = (a: string, b: string): boolean =>
  a === b || Math.abs(Number(a) - Number(b)) <= 0.02 + 1e-5 * Math.abs(Number(a));

test.each(ofEnergyDesk)('$question', async ({ question, query }) => {
  const [answered, expected] = [await client.query(query), await client.query(plain[question] ?? '')];
  expect(answered.rows.length).toBeGreaterThan(0);
  const names = expected.fields.map(({ name }) => name);
  const shown = answered.rows.map((row) => names.map((name) => row[name]));
  const said = expected.rows.map((row) => names.map((name) => row[name]));
  const near = shown.map((row, at) =>
    row.map((cell, place) => (isNear(cell ?? '', said[at]?.[place] ?? '') ? said[at]?.[place] : cell)),
  );
  expect(near).toEqual(said);
});

test.each(ofEnergyDesk)('$question: its cost does not rest on a guess of the planner', async ({ query }) => {
  const { rows } = await client.query(`explain (analyze, timing off, format json) ${query}`);
  expect(mostLoops(JSON.parse(rows[0]['QUERY PLAN'])[0].Plan)).toBeLessThan(20_000);
});

interface PlanNode {
  readonly 'Actual Loops': number;
  readonly Plans?: readonly PlanNode[];
}
/** How often the most repeated part of a plan ran: a view that is worked out for each row of another repeats often. */
const mostLoops = (node: PlanNode): number =>
  Math.max(node['Actual Loops'], ...(node.Plans ?? []).map(mostLoops));

test('every piece of SQL in docs/guides/analytics.md runs unchanged', async () => {
  await applyTypedViews(pipeline.warehouse.db);
  expect(examples.length).toBeGreaterThanOrEqual(4);
  for (const example of examples) {
    await client.query('begin');
    const [result] = [await client.query(example)].flat();
    // The service sends the same states as before the end of the backfill: there is no change to list.
    if (example.includes('from analytics.')) expect(result?.rowCount).toBeGreaterThan(0);
    await client.query('rollback');
  }
});
