import { readFileSync, writeFileSync } from 'node:fs';
import { sql } from 'drizzle-orm';
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { refreshNow } from '../../app/typed-views.ts';
import { refreshDataIssues } from '../../db/checks/check-data.ts';
import { type Pipeline, startPipeline } from '../support/pipeline.ts';
import { answers, type Sandbox } from './answers.ts';
import { effective, readSandbox } from './sandbox-data.ts';

const path = new URL('../../docs/guides/cookbook.md', import.meta.url);
const page = readFileSync(path, 'utf8');
/** `WRITE_COOKBOOK=1` writes the warehouse's answers to the page. */
const writing = process.env.WRITE_COOKBOOK === '1';

const analytics = readFileSync(new URL('../../docs/guides/analytics.md', import.meta.url), 'utf8');
const examples = [...analytics.matchAll(/^```sql\n([\s\S]*?)```/gm)].map(([, example = '']) => example);

interface Recipe {
  readonly question: string;
  readonly query: string;
  /** The answer on the page below the query. */
  readonly shown: string;
}

const recipes = [
  ...page.matchAll(/^### (.+)\n([\s\S]*?)```sql\n([\s\S]*?)```\n\n?((?:```text\n[\s\S]*?```\n)?)/gm),
].map(([, question = '', , query = '', shown = '']): Recipe => ({ question, query, shown }));

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
  );
}

async function ask(query: string): Promise<{ head: string[]; rows: string[][] }> {
  const answer = await client.query<(string | null)[]>({ text: query, rowMode: 'array' });
  return {
    head: answer.fields.map(({ name }) => name),
    rows: answer.rows.map((row) => row.map((cell) => cell ?? '')),
  };
}

/** The page shows the first rows of an answer. */
const shownRows = 2;

/** Aligns the columns of an answer, as psql does. */
function aligned({ head, rows }: { head: readonly string[]; rows: readonly (readonly string[])[] }): string {
  const lines = [head, ...rows.slice(0, shownRows)];
  const widths = head.map((_, at) => Math.max(...lines.map((cells) => cells[at]?.length ?? 0)));
  const line = (cells: readonly string[]) => cells.map((cell, at) => cell.padEnd(widths[at] ?? 0)).join('  ');
  return `\`\`\`text\n${lines.map((cells) => `${line(cells).trimEnd()}\n`).join('')}\`\`\`\n`;
}

test('every question has an independently computed answer', () => {
  expect(recipes.length).toBeGreaterThanOrEqual(25);
  expect(recipes.map(({ question }) => question)).toEqual(Object.keys(answers));
  expect(page.split('```sql').length - 1).toBe(recipes.length + 1);
});

test.each(recipes)('$question', async ({ question, query, shown }) => {
  const answer = await ask(query);
  expect(answer.rows.length).toBeGreaterThan(0);
  expect(answer.rows).toEqual(answers[question]?.(sandbox));
  if (!writing) expect(shown).toBe(aligned(answer));
});

test('every piece of SQL in docs/guides/analytics.md runs unchanged', async () => {
  await refreshNow(pipeline.warehouse.db);
  expect(examples.length).toBeGreaterThanOrEqual(4);
  for (const example of examples) {
    await client.query('begin');
    const [result] = [await client.query(example)].flat();
    // The service sends the same states as before the end of the backfill: there is no change to list.
    if (example.includes('from analytics.')) expect(result?.rowCount).toBeGreaterThan(0);
    await client.query('rollback');
  }
});

if (writing)
  test('the page is written', async () => {
    let text = page;
    for (const { query, shown } of recipes) {
      const block = `\`\`\`sql\n${query}\`\`\`\n`;
      const from = text.indexOf(block) + block.length;
      const rest = shown === '' ? text.slice(from) : text.slice(from).replace(`\n${shown}`, '');
      text = `${text.slice(0, from)}\n${aligned(await ask(query))}${rest}`;
    }
    writeFileSync(path, text);
  });
