import { sql } from 'drizzle-orm';
import { describe, expect, test } from 'vitest';
import { pageOf } from '../service/listing.ts';
import { createDeployment } from '../support/deployment.ts';
import { forFile } from '../support/for-file.ts';
import { documents, startScriptedService } from '../support/scripted-service.ts';

const service = await forFile(startScriptedService());
const deployment = await forFile(
  createDeployment({ env: { SERVICE_URL: service.url, SERVICE_API_KEY: 'key' } }),
);
await deployment.run('worker');

type Documents = ReturnType<typeof documents>;

/**
 * Adds a company that lists the present documents of `held`; `between` runs after each page that was read.
 */
function company(held: { now: Documents }, between: (page: number, read: number) => void = () => {}) {
  let read = 0;
  return service.addCompany({
    documents: (asked) => {
      const reply = pageOf(held.now, asked);
      read += 1;
      between(Number(asked.query.get('page')), read);
      return reply;
    },
  });
}

const rowsOf = async (companyId: string, which: 'alive' | 'tombstoned') => {
  const alive = which === 'alive';
  const result = await deployment.warehouse.db.execute<{ id: string }>(
    sql`select id from utility.documents where company_id = ${companyId}::uuid and (deleted_at is null) = ${alive}`,
  );
  return result.rows.map(({ id }) => id).sort();
};
const lastRun = async (companyId: string) =>
  (
    await deployment.warehouse.db.execute(sql`
      select state, pages, passes, rows_inserted::int as inserted, rows_tombstoned::int as tombstoned, error
      from metersync.runs where company_id = ${companyId}::uuid and resource = 'documents'
      order by started_at desc limit 1`)
  ).rows[0];
const idsOf = (held: Documents) => held.map(({ id }) => id).sort();

describe.concurrent('a listing that moves while it is read', () => {
  test('if it shrinks, is read until it is stable, and missing records are tombstoned', async () => {
    const held = { now: documents(205) };
    const all = held.now;
    const added = company(held, (_, read) => {
      // The third page is gone when it is requested: the second comes in its place (service.md 7).
      if (read === 2) held.now = all.slice(10);
    });
    expect(await deployment.backfill([added.id])).toBe('complete');
    expect(await rowsOf(added.id, 'alive')).toEqual(idsOf(held.now));
    expect(added.asked('documents')).toEqual([1, 2, 3, 1, 2, 1, 2]);
    expect(await lastRun(added.id)).toMatchObject({ state: 'complete', passes: 3, tombstoned: 10 });
  });

  test('if one deletion and one insertion hide an existing record, has it in the next passes', async () => {
    const held = { now: documents(250) };
    const [first] = held.now;
    const added = company(held, (_, read) => {
      // Behind the first page of the second backfill: the total stays, and record 101 is on no page.
      if (read === 4) held.now = [...held.now.slice(1), ...documents(1)];
    });
    await deployment.backfill([added.id]);
    expect(await deployment.backfill([added.id])).toBe('complete');
    expect(await rowsOf(added.id, 'alive')).toEqual(idsOf(held.now));
    expect(await rowsOf(added.id, 'tombstoned')).toEqual([first?.id]);
    expect(await lastRun(added.id)).toMatchObject({ passes: 3, tombstoned: 1 });
  });

  test('if it hides a record from every pass, is suspect, and no live record is tombstoned', async () => {
    const held = { now: documents(250) };
    const added = company(held, (page, read) => {
      if (read > 3 && page === 1) held.now = [...held.now.slice(1), ...documents(1)];
    });
    await deployment.backfill([added.id]);
    expect(await deployment.backfill([added.id])).toBe('suspect');
    expect(await rowsOf(added.id, 'tombstoned')).toEqual([]);
    expect(await lastRun(added.id)).toMatchObject({ state: 'suspect', passes: 3, tombstoned: 0 });
  });
});

describe.concurrent('a record that is missing from a listing', () => {
  test('is tombstoned when a second pass agrees, and restored when it reappears', async () => {
    const held = { now: documents(5) };
    const all = held.now;
    const added = company(held);
    await deployment.backfill([added.id]);
    held.now = all.slice(1);
    expect(await deployment.backfill([added.id])).toBe('complete');
    expect(added.asked('documents')).toEqual([1, 1, 1]);
    expect(await rowsOf(added.id, 'tombstoned')).toEqual([all[0]?.id]);
    expect(await lastRun(added.id)).toMatchObject({ passes: 2, tombstoned: 1 });
    held.now = all;
    await deployment.backfill([added.id]);
    expect([await rowsOf(added.id, 'alive'), await rowsOf(added.id, 'tombstoned')]).toEqual([idsOf(all), []]);
  });

  test('stays if the listing is suddenly empty, which is suspect', async () => {
    const held = { now: documents(5) };
    const all = held.now;
    const added = company(held);
    await deployment.backfill([added.id]);
    held.now = [];
    expect(await deployment.backfill([added.id])).toBe('suspect');
    expect(await rowsOf(added.id, 'alive')).toEqual(idsOf(all));
    expect(await lastRun(added.id)).toMatchObject({
      error: expect.stringContaining('lists nothing where 5 rows live'),
    });
  });
});
