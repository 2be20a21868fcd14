import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import { describe, expect, test } from 'vitest';
import { pageOf } from '../service/listing.ts';
import { activitiesOn } from '../support/activities.ts';
import { alive, backfill } from '../support/billing.ts';
import { documents } from '../support/scripted-service.ts';

const documentsAlone = { connections: null, meters: null, usageData: null, intervals: null };
const idsOf = (held: readonly { readonly id: string }[]) => held.map(({ id }) => id).sort();

/** Makes a company that lists `now`. `moves` runs after each page, with its number and the count so far. */
async function companyWith(count: number) {
  const id = randomUUID();
  const company = { now: documents(count), moves: (_page: number, _read: number): void => {} };
  let read = 0;
  const under = await activitiesOn((asked) => {
    if (asked.path === '/v2.2/company') return { json: [{ id }] };
    const reply = pageOf(company.now, asked);
    read += 1;
    company.moves(Number(asked.query.get('page')), read);
    return reply;
  }, documentsAlone);
  /** Backfills the company. Returns which documents are live and which pages were read. */
  const backfilled = async () => {
    read = 0;
    const before = under.asked().length;
    const { runId, state } = await backfill(under, [id]);
    const { rows } = await under.warehouse.db.execute(sql`
      select passes, rows_tombstoned::int as tombstoned, error
      from metersync.runs where run_id = ${runId}::uuid and resource = 'documents'`);
    const pages = under
      .asked()
      .slice(before)
      .filter((path) => path.startsWith('/document/company/'));
    return {
      state,
      ...rows[0],
      alive: await alive(under, 'documents'),
      pages: pages.map((path) => Number(path.split('page=')[1])),
    };
  };
  return Object.assign(company, { backfill: backfilled });
}

describe('a listing that moves while it is read', () => {
  test('is read until it is stable if it shrinks, and missing records are tombstoned', async () => {
    const company = await companyWith(205);
    await company.backfill();
    const rest = company.now.slice(10);
    company.moves = (_, read) => {
      // Instead of the third page, which is gone, the service returns the second (service.md 7).
      if (read === 2) company.now = rest;
    };
    expect(await company.backfill()).toMatchObject({
      state: 'complete',
      passes: 3,
      tombstoned: 10,
      alive: idsOf(rest),
      pages: [1, 2, 3, 1, 2, 1, 2],
    });
  });

  test('has an existing record in the next passes if one deletion and one insertion hid it in the first', async () => {
    const company = await companyWith(250);
    await company.backfill();
    company.moves = (_, read) => {
      // This happens after the first page was read. The total does not change, and record 101 is on no page.
      if (read === 1) company.now = [...company.now.slice(1), ...documents(1)];
    };
    const { alive, ...run } = await company.backfill();
    expect(run).toMatchObject({ state: 'complete', passes: 3, tombstoned: 1 });
    expect(alive).toEqual(idsOf(company.now));
  });

  test('is suspect if it hides a record from every pass, and no live record is tombstoned', async () => {
    const company = await companyWith(250);
    await company.backfill();
    company.moves = (page) => {
      if (page === 1) company.now = [...company.now.slice(1), ...documents(1)];
    };
    expect(await company.backfill()).toMatchObject({ state: 'suspect', passes: 3, tombstoned: 0 });
  });
});

test('a record that is missing from a listing is tombstoned when a second pass agrees, and restored when it reappears', async () => {
  const company = await companyWith(5);
  const all = company.now;
  expect(await company.backfill()).toMatchObject({ passes: 1 });
  company.now = all.slice(1);
  expect(await company.backfill()).toMatchObject({
    state: 'complete',
    passes: 2,
    tombstoned: 1,
    pages: [1, 1],
  });
  company.now = all;
  expect((await company.backfill()).alive).toEqual(idsOf(all));
});

test('a listing that is suddenly empty is suspect, and its records stay', async () => {
  const company = await companyWith(5);
  const all = idsOf(company.now);
  await company.backfill();
  company.now = [];
  expect(await company.backfill()).toMatchObject({
    state: 'suspect',
    alive: all,
    error: expect.stringContaining('lists nothing where 5 rows live'),
  });
});
