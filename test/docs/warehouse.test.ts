import { readFileSync } from 'node:fs';
import { sql } from 'drizzle-orm';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { describeWarehouse } from '../../verify/warehouse-page.ts';
import { createWarehouse } from '../support/warehouse.ts';
import { warehouseRows } from './warehouse-rows.ts';

const page = readFileSync(new URL('../../docs/warehouse.md', import.meta.url), 'utf8');
/** Each block of SQL under the line that says what it answers. */
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

describe('docs/warehouse.md', () => {
  test('has at least ten examples, and no block of SQL without the question that it answers', () => {
    expect(examples.length).toBeGreaterThanOrEqual(10);
    expect(examples).toHaveLength(page.split('```sql').length - 1);
    for (const { question } of examples) expect(question).toContain('?');
  });

  test.each(examples)('$question', async ({ query }) => {
    const { rows } = await warehouse.db.execute(sql.raw(query));
    expect(rows).not.toEqual([]);
  });

  test('its reference has every table and column of the database, and their comments', async () => {
    expect(page).toContain(await describeWarehouse(warehouse.db));
  });
});
