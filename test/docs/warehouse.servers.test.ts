import { readFileSync } from 'node:fs';
import { sql } from 'drizzle-orm';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { dictionaryPage } from '../../verify/dictionary-page.ts';
import { createWarehouse } from '../support/warehouse.ts';
import { warehouseRows } from './warehouse-rows.ts';

const read = (page: string) => readFileSync(new URL(`../../docs/${page}`, import.meta.url), 'utf8');
const page = read('guides/warehouse.md');
const dictionary = read('reference/dictionary.md');
/** Lists blocks of SQL, each with the line above it: its question. */
const examples = [...page.matchAll(/^(.+)\n\n```sql\n([\s\S]*?)```$/gm)].map(
  ([, question = '', query = '']) => ({
    question,
    query,
  }),
);

let warehouse: Awaited<ReturnType<typeof createWarehouse>>;
beforeAll(async () => {
  warehouse = await createWarehouse();
  await warehouse.db.execute(sql.raw(warehouseRows));
});
afterAll(() => warehouse.drop());

describe('docs/guides/warehouse.md', () => {
  test('has examples, and each block of SQL has a question', () => {
    expect(examples.length).toBeGreaterThanOrEqual(4);
    expect(examples).toHaveLength(page.split('```sql').length - 1);
    for (const { question } of examples) expect(question).toContain('?');
  });

  test.each(examples)('an analyst can ask: $question', async ({ query }) => {
    const { rows } = await warehouse.db.transaction(async (tx) => {
      await tx.execute(sql`set local role metersync_analyst`);
      return await tx.execute(sql.raw(query));
    });
    expect(rows).not.toEqual([]);
  });
});

describe('docs/reference/dictionary.md', () => {
  test('has every table and column of the database, and their comments', async () => {
    expect(dictionary).toBe(await dictionaryPage(warehouse.db));
  });
});

/** Lists the views of analytics with all of these columns. */
async function viewsWith(...columns: readonly string[]): Promise<unknown[]> {
  const { rows } = await warehouse.db.execute<{ name: string }>(sql`
    select c.relname as name from pg_class c join pg_attribute a on a.attrelid = c.oid
    where c.relnamespace = 'analytics'::regnamespace and c.relkind = 'v'
      and a.attname in (${sql.join(
        columns.map((column) => sql`${column}`),
        sql`, `,
      )})
    group by 1 having count(*) = ${columns.length} order by 1`);
  return rows.map(({ name }) => name);
}

test('views with the name of a thing in the records have the name that it has in analytics, too', async () => {
  const types = await viewsWith('datasource_type');
  expect(types.length).toBeGreaterThanOrEqual(10);
  expect(await viewsWith('commodity', 'datasource_type')).toEqual(types);
  expect(await viewsWith('commodity')).toEqual(expect.arrayContaining(types));
  const amounts = await viewsWith('usage');
  expect(amounts.length).toBeGreaterThanOrEqual(6);
  expect(await viewsWith('usage', 'units')).toEqual(amounts);
});
