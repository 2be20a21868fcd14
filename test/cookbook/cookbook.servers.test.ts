import { readFileSync } from 'node:fs';
import { sql } from 'drizzle-orm';
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { refreshDataIssues } from '../../db/checks/check-data.ts';
import { applyTypedViews } from '../../db/fields/typed-views.ts';
import { keepMonths } from '../../db/watch/months.ts';
import { type Pipeline, startPipeline } from '../support/pipeline.ts';
import { plain } from './plain.ts';

const page = readFileSync(new URL('../../docs/cookbook.md', import.meta.url), 'utf8');
const analytics = readFileSync(new URL('../../docs/analytics.md', import.meta.url), 'utf8');
const examples = [...analytics.matchAll(/^```sql\n([\s\S]*?)```/gm)].map(([, example = '']) => example);

const recipes = [...page.matchAll(/^### (.+)\n[\s\S]*?```sql\n([\s\S]*?)```\n/gm)].map(
  ([, question = '', query = '']) => ({ question, query }),
);

let pipeline: Pipeline;
let client: pg.Client;

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
  const { warehouse } = pipeline;
  expect(await pipeline.backfill()).toBe('complete');
  await correct();
  expect(await pipeline.backfill()).toBe('complete');
  expect(await pipeline.audit()).toMatchObject({ differences: 0 });

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

/** Corrects a bill in place for each currency, supersedes one, deletes one, and stops two connections. */
async function correct(): Promise<void> {
  const idsOf = async (query: string): Promise<string[]> => {
    const { rows } = await pipeline.warehouse.db.execute<{ id: string }>(sql.raw(query));
    return rows.map(({ id }) => id);
  };
  const billsIn = (currency: string) =>
    idsOf(`select d.id from utility.documents d where d.raw ->> 'chargesUnits' = '${currency}' and d.deleted_at is null
      and d.revised_document_id is null order by d.id limit 3`);
  const [canadian] = await billsIn('CAD');
  const [first, second, third] = await billsIn('USD');
  const [waiting, down] = await idsOf('select id from utility.connections order by id limit 2');
  await pipeline.service.change(
    { type: 'reprocessDocument', documentId: canadian },
    { type: 'reprocessDocument', documentId: first },
    { type: 'supersedeDocument', documentId: second, id: '5a000000-0000-4000-8000-000000000001' },
    { type: 'deleteDocument', documentId: third },
    { type: 'updateConnection', connectionId: waiting, status: 'MFA_TOKEN_EXPIRED' },
    { type: 'updateConnection', connectionId: down, status: 'WEBSITE_DOWN' },
  );
}

test('every question of the cookbook also has an answer in plain SQL', () => {
  expect(recipes.length).toBeGreaterThanOrEqual(25);
  expect(recipes.map(({ question }) => question)).toEqual(Object.keys(plain));
  expect(page.split('```sql').length - 1).toBe(recipes.length + 1);
});

/** Whether two amounts are equal except for the rounding of months' shares and standard units. */
const isNear = (a: string, b: string, cents: number): boolean =>
  a === b || Math.abs(Number(a) - Number(b)) <= cents + 1e-6 * Math.abs(Number(a));

test.each(recipes)('$question', async ({ question, query }) => {
  const [answered, expected] = [await client.query(query), await client.query(plain[question] ?? '')];
  expect(answered.rows.length).toBeGreaterThan(0);
  const names = expected.fields.map(({ name }) => name);
  const shown = answered.rows.map((row) => names.map((name) => row[name]));
  const said = expected.rows.map((row) => names.map((name) => row[name]));
  const cents = question.includes('cost, month by month') ? 0.02 : 0;
  const near = shown.map((row, at) =>
    row.map((cell, place) => {
      const other = said[at]?.[place];
      return isNear(cell ?? '', other ?? '', cents) ? other : cell;
    }),
  );
  expect(near).toEqual(said);
});

test.each(recipes)('$question: the cost does not depend on a guess of the planner', async ({ query }) => {
  const { rows } = await client.query(`explain (analyze, timing off, format json) ${query}`);
  expect(mostLoops(JSON.parse(rows[0]['QUERY PLAN'])[0].Plan)).toBeLessThan(20_000);
});

interface PlanNode {
  readonly 'Actual Loops': number;
  readonly Plans?: readonly PlanNode[];
}
/** Returns how often the most repeated part of a plan ran, such as a view that is computed for each row. */
const mostLoops = (node: PlanNode): number =>
  Math.max(node['Actual Loops'], ...(node.Plans ?? []).map(mostLoops));

test('every piece of SQL in docs/analytics.md runs unchanged', async () => {
  await applyTypedViews(pipeline.warehouse.db);
  expect(examples.length).toBeGreaterThanOrEqual(4);
  for (const example of examples) {
    await client.query('begin');
    const [result] = [await client.query(example)].flat();
    // The service sends the same states as before the end of the backfill, so there is no change to list.
    if (example.includes('from analytics.')) expect(result?.rowCount).toBeGreaterThan(0);
    await client.query('rollback');
  }
});
