import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import { describe, expect, test } from 'vitest';
import { recordEvents } from '../../db/events/record.ts';
import { dueOwners } from '../../db/queue/due.ts';
import { countGivenUp } from '../../db/read/health.ts';
import { pageOf } from '../service/listing.ts';
import type { Asked, Reply } from '../service/scripted-server.ts';
import { type ActivitiesUnderTest, activitiesOn, outcomes, queues } from '../support/activities.ts';
import { company, delivery, documentEvent } from '../support/events.ts';
import { shapeOf } from '../support/scripted-service.ts';

/** The endpoints of a service without single documents and their usage. */
const listingsOnly = { document: null, documentUsage: null };
const updated = '2026-05-01T00:00:00.000001';
const createdAt = (second: number) =>
  `2026-01-${String(1 + Math.floor(second / 86_400)).padStart(2, '0')}T${new Date(second * 1000).toISOString().slice(11, 19)}.000001`;

interface Bill {
  readonly id: string;
  readonly created: string;
  readonly updated: string;
  readonly usageData: readonly { readonly id: string; readonly created: string }[];
}

/** The bills of a company, in the order of the listings. Each bill has one row of usage. */
class Bills {
  bills: Bill[];
  /** Called before each page of documents is answered. */
  onPage: (page: number) => void = () => {};

  constructor(count: number) {
    this.bills = Array.from({ length: count }, (_, at) => this.bill(at));
  }

  bill(second: number): Bill {
    const created = createdAt(second);
    return { id: randomUUID(), created, updated, usageData: [{ id: randomUUID(), created }] };
  }

  /**
   * Skips a bill in each walk: bills of the first page are deleted before the second and the third page are
   * answered, so that the other bills move up.
   */
  skip(skipped: Bill): void {
    this.bills = this.bills.filter((bill) => bill !== skipped);
    this.onPage = (page) => {
      if (page === 2) this.bills = [...this.bills.slice(1), this.bill(1_000)];
      if (page === 3) this.bills = this.bills.slice(1);
    };
  }

  answer = (asked: Asked): Reply => {
    const [, , resource] = asked.path.split('/');
    if (asked.path === '/v2.2/company') return { json: [company] };
    if (resource === 'meter') return pageOf([], asked, shapeOf('meters'));
    if (resource === 'document') {
      this.onPage(Number(asked.query.get('page')));
      return pageOf(this.bills, asked);
    }
    const rows = this.bills.flatMap(({ id, usageData }) =>
      usageData.map((row) => ({ ...row, document: { id } })),
    );
    return pageOf(rows, asked, shapeOf('usageData'));
  };
}

async function announced(service: Bills, wanted: readonly Bill[]): Promise<ActivitiesUnderTest> {
  const under = await activitiesOn(service.answer, listingsOnly);
  await announce(under, wanted);
  return under;
}
const announce = ({ warehouse }: ActivitiesUnderTest, wanted: readonly Bill[]) =>
  recordEvents(
    warehouse.db,
    wanted.map(({ id, created }) => delivery(documentEvent('updated', id, updated, { created }))),
  );
const catchUp = async ({ run, activities, warehouse }: ActivitiesUnderTest) => {
  await warehouse.db.execute(
    sql`update metersync.journal set due_at = clock_timestamp() where outcome = 'pending'`,
  );
  await run(activities.sweepOwners, { owners: queues('documents', [company.id]) });
};
const pagesAsked = ({ asked }: ActivitiesUnderTest, of: 'document' | 'usage') =>
  asked()
    .filter((path) => path.startsWith(`/${of}/`))
    .map((path) => Number(new URLSearchParams(path.split('?')[1]).get('page')));
const usageOf = async ({ warehouse }: ActivitiesUnderTest, { id }: Bill) =>
  (
    await warehouse.db.execute<{ id: string; listed: boolean }>(
      sql`select id, raw ? 'document' as listed from utility.usage_data where document_id = ${id}::uuid and deleted_at is null`,
    )
  ).rows;

test('a document that its endpoint does not show and the listing skips is not tombstoned', async () => {
  const service = new Bills(300);
  const wanted = service.bills[150] as Bill;
  const under = await activitiesOn(
    (asked) =>
      /\/document\/(?!company\/)/.test(asked.path) ? { status: 404, json: {} } : service.answer(asked),
    { documentUsage: null },
  );
  await announce(under, [wanted]);
  service.skip(wanted);
  for (let attempt = 0; attempt < 12; attempt++) await catchUp(under);
  expect(await outcomes(under)).toEqual({ pending: 1 });
});

describe('a service without single documents', () => {
  test.each([1, 2, 10])(
    'finds a new document among %i pages by reading the first and the last page of each listing',
    async (pages) => {
      const service = new Bills(100 * pages);
      const newest = service.bills.at(-1) as Bill;
      const under = await announced(service, [newest]);
      await catchUp(under);
      const expected = pages === 1 ? [1] : [1, 1_000_000];
      expect([pagesAsked(under, 'document'), pagesAsked(under, 'usage')]).toEqual([expected, expected]);
      expect(await outcomes(under)).toEqual({ applied: 1 });
      expect(await usageOf(under, newest)).toEqual([{ id: newest.usageData[0]?.id, listed: true }]);
    },
  );

  test('needs only the first page of each listing if the newest documents come first', async () => {
    const service = new Bills(1_000);
    service.bills.reverse();
    const under = await announced(service, service.bills.slice(0, 1));
    await catchUp(under);
    expect([pagesAsked(under, 'document'), pagesAsked(under, 'usage')]).toEqual([[1], [1]]);
    expect(await outcomes(under)).toEqual({ applied: 1 });
  });

  test('walks the listing once for all documents that wait on its other pages', async () => {
    const service = new Bills(600);
    service.bills.sort((a, b) => a.id.localeCompare(b.id));
    const wanted = Array.from({ length: 40 }, (_, at) => service.bills[15 * at] as Bill);
    const under = await announced(service, wanted);
    await catchUp(under);
    expect(pagesAsked(under, 'document')).toEqual([1, 1_000_000, 1, 2, 3, 4, 5, 6]);
    expect(await outcomes(under)).toEqual({ applied: 40 });
    expect(await usageOf(under, wanted[7] as Bill)).toHaveLength(1);
  });

  test('can walk a listing that refuses a page beyond its last page', async () => {
    const service = new Bills(300);
    const under = await activitiesOn((asked) => {
      const beyond = Number(asked.query.get('page')) > 3;
      return beyond ? { status: 404, json: { detail: 'Invalid page.' } } : service.answer(asked);
    }, listingsOnly);
    await announce(under, service.bills.slice(150, 151));
    await catchUp(under);
    expect(await outcomes(under)).toEqual({ applied: 1 });
  });

  test('does not tombstone a document that the listing skips between two pages', async () => {
    const service = new Bills(300);
    const wanted = service.bills[150] as Bill;
    const under = await announced(service, [wanted]);
    service.skip(wanted);
    for (let attempt = 0; attempt < 12; attempt++) await catchUp(under);
    expect(await outcomes(under)).toEqual({ pending: 1 });
  });
});

describe('a document absent from every complete listing', () => {
  test('backs off, ends as missing, and is not searched again', async () => {
    const service = new Bills(250);
    const never = service.bill(5_000);
    const under = await announced(service, [never]);
    const delays: number[] = [];
    for (;;) {
      await catchUp(under);
      const { rows } = await under.warehouse.db.execute<{ outcome: string; seconds: number }>(
        sql`select outcome, extract(epoch from next_attempt_at - clock_timestamp())::float8 as seconds from metersync.events`,
      );
      if (rows[0]?.outcome !== 'pending') break;
      delays.push(Math.ceil(rows[0].seconds));
    }
    expect(delays).toEqual([1, 2, 4, 8, 16, 32, 64, 128]);
    expect(await outcomes(under)).toEqual({ missing: 1 });
    expect(await dueOwners(under.warehouse.db, 'documents', 10)).toEqual([]);

    // The document was only late. Any read of its page settles its events.
    service.bills.push(never);
    await announce(under, service.bills.slice(-2, -1));
    await catchUp(under);
    await catchUp(under);
    expect(await outcomes(under)).toEqual({ applied: 2 });
    expect(await usageOf(under, never)).toEqual([{ id: never.usageData[0]?.id, listed: true }]);
  });

  test('is no longer missing once the late event of its deletion arrives', async () => {
    const service = new Bills(3);
    const gone = service.bill(5_000);
    const under = await announced(service, [gone]);
    const { db } = under.warehouse;
    for (let attempt = 0; attempt < 9; attempt++) await catchUp(under);
    expect(await countGivenUp(db, 10)).toEqual({ dead: 0, missingLately: 1 });
    await recordEvents(db, [delivery(documentEvent('deleted', gone.id, '2026-05-02T00:00:00.000001'))]);
    await catchUp(under);
    expect(await outcomes(under)).toEqual({ applied: 1, superseded: 1 });
    expect(await countGivenUp(db, 10)).toEqual({ dead: 0, missingLately: 0 });
  });
});
