import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import { describe, expect, test } from 'vitest';
import { pageOf } from '../service/listing.ts';
import type { Reply } from '../service/scripted-server.ts';
import { type ActivitiesUnderTest, activitiesOn } from '../support/activities.ts';
import { documents } from '../support/scripted-service.ts';

const companyId = randomUUID();
const input = () => ({ runId: randomUUID(), companyId, resource: 'documents' as const });
const pagesAsked = ({ asked }: ActivitiesUnderTest) =>
  asked().map((path) => Number(new URLSearchParams(path.split('?')[1]).get('page')));
const alive = async ({ warehouse }: ActivitiesUnderTest) =>
  (await warehouse.db.execute(sql`select from utility.documents where deleted_at is null`)).rowCount;
const manifestPages = async ({ warehouse }: ActivitiesUnderTest) =>
  (await warehouse.db.execute(sql`select from metersync.pages`)).rowCount;

/** Fails at the given request with an answer that no retry can help, once. */
function failingOnce(held: readonly object[], at: number) {
  let number = 0;
  const refused: Reply = { status: 403, json: { detail: 'not now' } };
  return (asked: Parameters<typeof pageOf>[1]): Reply => {
    number += 1;
    return number === at ? refused : pageOf(held, asked);
  };
}

describe('a backfill of a listing that was interrupted', () => {
  test('goes on behind the last page that was written, and judges the pass as a whole', async () => {
    const held = documents(350);
    const under = await activitiesOn(failingOnce(held, 3));
    const run = input();
    const first = under.run(under.activities.backfillListing, run);
    await expect(first).rejects.toMatchObject({ type: 'SERVICE_ACCESS_DENIED', nonRetryable: true });
    expect([await alive(under), await manifestPages(under)]).toEqual([200, 2]);

    const cursor = { pass: 1, page: 2, written: { inserted: 200, changed: 0, rejected: 0 } };
    expect(await under.run(under.activities.backfillListing, run, cursor)).toBe('complete');
    expect(pagesAsked(under)).toEqual([1, 2, 3, 3, 4]);
    expect([await alive(under), await manifestPages(under)]).toEqual([350, 0]);
  });

  test('reads a page again whose cursor was not told, and changes nothing by it', async () => {
    const held = documents(350);
    const under = await activitiesOn(failingOnce(held, 4));
    const run = input();
    await expect(under.run(under.activities.backfillListing, run)).rejects.toThrow();
    const cursor = { pass: 1, page: 1, written: { inserted: 100, changed: 0, rejected: 0 } };
    expect(await under.run(under.activities.backfillListing, run, cursor)).toBe('complete');
    expect(pagesAsked(under)).toEqual([1, 2, 3, 4, 2, 3, 4]);
    expect(await alive(under)).toBe(350);
  });

  test('behind the very last page reads nothing more', async () => {
    const held = documents(150);
    const under = await activitiesOn((asked) => pageOf(held, asked));
    const run = input();
    await under.run(under.activities.backfillListing, run);
    // The manifest of an attempt that was killed before it could conclude.
    await under.warehouse.db.execute(sql`
      insert into metersync.pages (run_id, company_id, resource, pass, asked, current_page, total, has_next, ids, read_at)
      select ${run.runId}::uuid, ${companyId}::uuid, 'documents', 1, page, page, 150, page = 1, ids, now()
      from (values (1, ${sql.param(held.slice(0, 100).map(({ id }) => id))}::text[]),
        (2, ${sql.param(held.slice(100).map(({ id }) => id))}::text[])) as t (page, ids)`);
    const cursor = { pass: 1, page: 2, written: { inserted: 150, changed: 0, rejected: 0 } };
    expect(await under.run(under.activities.backfillListing, run, cursor)).toBe('complete');
    expect(pagesAsked(under)).toEqual([1, 2]);
  });

  test('whose manifest went with a crash of Postgres reads the pass again before it believes it', async () => {
    const held = documents(250);
    const under = await activitiesOn((asked) => pageOf(held, asked));
    const cursor = { pass: 1, page: 1, written: { inserted: 100, changed: 0, rejected: 0 } };
    expect(await under.run(under.activities.backfillListing, input(), cursor)).toBe('complete');
    expect(pagesAsked(under)).toEqual([2, 3, 1, 2, 3]);
    expect(await alive(under)).toBe(250);
  });
});
