import { readFileSync } from 'node:fs';
import { sql } from 'drizzle-orm';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createWarehouse } from '../support/warehouse.ts';
import { warehouseRows } from './warehouse-rows.ts';

const read = (page: string) => readFileSync(new URL(`../../docs/${page}`, import.meta.url), 'utf8');
const page = read('guides/warehouse.md');
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
