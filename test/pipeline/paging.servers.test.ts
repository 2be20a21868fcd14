import { sql } from 'drizzle-orm';
import { describe, expect, test } from 'vitest';
import { type ListingShape, pageOf } from '../service/listing.ts';
import { long } from '../support/cases.ts';
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

describe.concurrent('a listing that does not change', () => {
  const shapes: [name: string, shape: ListingShape][] = [
    ['the complete envelope', {}],
    ['no hasNext', { omit: ['hasNext'] }],
    ['no hasNext and no totalPages', { omit: ['hasNext', 'totalPages'] }],
    ['no total', { omit: ['totalDocuments'] }],
    ['no page of its own in the answer', { omit: ['currentPage'] }],
  ];
  test.each(shapes)('with %s is read to its end, and no page beyond is written', async (_, shape) => {
    const counts = { 1: 1, 100: 1, 101: 2, 200: 2, ...(long && { 99: 1, 201: 3 }) };
    const companies = Object.entries(counts).map(([count, pages]) => {
      const held = documents(Number(count));
      const { id } = service.addCompany({ documents: (asked) => pageOf(held, asked, shape) });
      return { id, held, pages };
    });
    expect(await deployment.backfill(companies.map(({ id }) => id))).toBe('complete');
    for (const { id, held, pages } of companies) {
      expect(await rowsOf(id, 'alive')).toEqual(idsOf(held));
      const run = { state: 'complete', pages, passes: 1, inserted: held.length };
      expect(await lastRun(id)).toMatchObject(run);
    }
  });

  test.each([0, 1] as const)(
    'is complete if it is empty and says that it has %i pages',
    async (totalPagesWhenEmpty) => {
      const added = service.addCompany({ documents: (asked) => pageOf([], asked, { totalPagesWhenEmpty }) });
      expect(await deployment.backfill([added.id])).toBe('complete');
      expect(await lastRun(added.id)).toMatchObject({ state: 'complete', inserted: 0 });
      expect(added.asked('documents')).toEqual([1]);
    },
  );
});

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

  test('if it grows at its top, repeats records without harm and has the new record in the next pass', async () => {
    const held = { now: documents(250) };
    const added = company(held, (_, read) => {
      if (read === 1) held.now = [...documents(1), ...held.now];
    });
    expect(await deployment.backfill([added.id])).toBe('complete');
    expect(await rowsOf(added.id, 'alive')).toEqual(idsOf(held.now));
  });

  test('if it moves all the time, is suspect after three passes, with all listed records in the warehouse', async () => {
    const held = { now: documents(250) };
    const added = company(held, () => {
      held.now = [...held.now, ...documents(1)];
    });
    expect(await deployment.backfill([added.id])).toBe('suspect');
    const run = await lastRun(added.id);
    expect(run).toMatchObject({ state: 'suspect', passes: 3, tombstoned: 0 });
    expect(run?.error).toContain('the total changed between pages');
    expect((await rowsOf(added.id, 'alive')).length).toBeGreaterThanOrEqual(257);
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

  test('stays if the second pass lists it again', async () => {
    const held = { now: documents(5) };
    const all = held.now;
    const added = company(held, (_, read) => {
      held.now = read === 1 ? all.slice(1) : all;
    });
    await deployment.backfill([added.id]);
    expect(await deployment.backfill([added.id])).toBe('complete');
    expect(await rowsOf(added.id, 'alive')).toEqual(idsOf(all));
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

describe.concurrent('a listing that fails', () => {
  test.each([
    [404, 'SERVICE_NOT_FOUND'],
    [403, 'SERVICE_ACCESS_DENIED'],
    [400, 'SERVICE_REQUEST_REFUSED'],
  ])(
    'with %i makes the run partial with the reason, and the other listings are complete',
    async (status, code) => {
      const held = documents(3);
      const { id } = service.addCompany({
        documents: (asked) => pageOf(held, asked),
        usageData: () => ({ status, json: { detail: 'refused' } }),
      });
      expect(await deployment.backfill([id])).toBe('partial');
      expect(await rowsOf(id, 'alive')).toEqual(idsOf(held));
      const states = await deployment.warehouse.db.execute(
        sql`select resource, state, error from metersync.runs where company_id = ${id}::uuid and state <> 'complete'`,
      );
      expect(states.rows).toEqual([
        { resource: 'usageData', state: 'failed', error: expect.stringContaining(code) },
      ]);
    },
  );

  test('for a while (5xx, cut answers, HTML) is still read to its end', async () => {
    const held = documents(150);
    const trouble = [
      { status: 503, json: { detail: 'later' } },
      { cut: '{"documents":[' },
      { body: '<html>Bad Gateway</html>' },
    ] as const;
    let asked = 0;
    const { id } = service.addCompany({ documents: (one) => trouble[asked++] ?? pageOf(held, one) });
    expect(await deployment.backfill([id])).toBe('complete');
    expect(await rowsOf(id, 'alive')).toEqual(idsOf(held));
  });
});
