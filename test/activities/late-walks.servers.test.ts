import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import { describe, expect, test } from 'vitest';
import { approveDeletes, readDeletes } from '../../db/deletes/decide.ts';
import { warehouseNow } from '../../db/queue/due.ts';
import { proving } from '../../db/records/fence.ts';
import { tableOf } from '../../db/resources.ts';
import { pageOf } from '../service/listing.ts';
import type { Asked, Reply } from '../service/scripted-server.ts';
import { activitiesOn } from '../support/activities.ts';
import { shapeOf } from '../support/scripted-service.ts';

/** Listings, each with the segment of its path, and the field of its records that the test changes. */
const listings = {
  connections: { path: 'connection', field: 'status' },
  documents: { path: 'document', field: 'number' },
  usageData: { path: 'usage', field: 'label' },
  meters: { path: 'meter', field: 'label' },
} as const;
type Listing = keyof typeof listings;

/** Makes a service whose one company lists `now`. An answer waits while `frozen` chooses its request. */
async function serviceOf(listing: Listing | 'companies', now: object[]) {
  const company = randomUUID();
  const freeze = Promise.withResolvers<void>();
  const asked = Promise.withResolvers<void>();
  const service = { company, now, frozen: (_: Asked): boolean => false };
  const truth = (request: Asked): Reply => {
    const [, , kind] = request.path.split('/');
    if (kind === 'company') {
      const companies = listing === 'companies' ? service.now : [{ id: company, name: 'Acme', sites: [] }];
      return pageOf(companies, request, { key: 'companies', total: 'totalCompanies' });
    }
    const found = Object.entries(listings).find(([, { path }]) => path === kind);
    if (found === undefined) return pageOf([], request, { key: 'intervals', total: 'totalIntervals' });
    const records = found[0] === listing ? service.now : [];
    return pageOf(records, request, shapeOf(found[0] as Listing));
  };
  const under = await activitiesOn(async (request) => {
    const reply = truth(request);
    if (!service.frozen(request)) return reply;
    service.frozen = () => false;
    asked.resolve();
    await freeze.promise;
    return reply;
  });
  const { run, activities, warehouse } = under;
  const attempt = async (runId: string, cursor?: unknown) => {
    if (listing === 'companies') return await run(activities.beginRun, { runId, kind: 'full' });
    return await run(activities.readCompany, { runId, companyId: company }, cursor);
  };
  const backfill = async (): Promise<void> => {
    const runId = randomUUID();
    await run(activities.beginRun, { runId, kind: 'full' });
    await attempt(runId);
    await run(activities.concludeRun, { runId });
  };
  /** Begins to read, until the worker freezes. The function that it returns lets the worker go on. */
  const freezeOn = async (runId: string, which: (asked: Asked) => boolean) => {
    service.frozen = which;
    const frozen = attempt(runId);
    await asked.promise;
    return async () => {
      freeze.resolve();
      await frozen;
    };
  };
  const fence = async () =>
    (await warehouse.db.execute(sql`select * from metersync.listings where resource = ${listing}`)).rows;
  return Object.assign(service, { ...under, attempt, backfill, freezeOn, fence });
}

const isPage =
  (listing: Listing, page = 1) =>
  ({ path, query }: Asked): boolean =>
    path.startsWith(`/v2.2/${listings[listing].path}/company/`) && query.get('page') === String(page);

const names = Object.keys(listings) as Listing[];
const recordOf = (listing: Listing, id: string, value: string): object => ({
  id,
  [listings[listing].field]: value,
});

const valuesIn = async (
  { warehouse: { db } }: Awaited<ReturnType<typeof serviceOf>>,
  listing: Listing,
): Promise<(string | null)[]> => {
  const { rows } = await db.execute<{ value: string | null }>(sql`
    select case when deleted_at is null then raw ->> ${listings[listing].field} end as value
    from ${tableOf(listing)} order by id`);
  return rows.map(({ value }) => value);
};

describe.each(names)('%s: a worker that was frozen', (listing) => {
  const ids = [randomUUID(), randomUUID()].sort() as [string, string];
  const all = (value: string) => ids.map((id) => recordOf(listing, id, value));

  test('does not bring back an older state with a page, once another attempt has read the listing', async () => {
    const service = await serviceOf(listing, all('new'));
    await service.backfill();
    const runId = randomUUID();
    service.now = all('between');
    const goOn = await service.freezeOn(runId, isPage(listing));
    service.now = all('new');
    await service.attempt(runId);
    const fence = await service.fence();
    await goOn();
    expect(await valuesIn(service, listing)).toEqual(['new', 'new']);
    // The late proof of the older walk does not move the fence back.
    const { rows } = await service.warehouse.db.execute(sql`select from metersync.pages`);
    expect([await service.fence(), rows]).toEqual([fence, []]);
    service.now = all('newest');
    await service.backfill();
    expect(await valuesIn(service, listing)).toEqual(['newest', 'newest']);
  });

  test('deletes no row that another attempt has found in the listing', async () => {
    const service = await serviceOf(listing, all('new'));
    await service.backfill();
    const runId = randomUUID();
    service.now = all('new').slice(0, 1);
    let pages = 0;
    const goOn = await service.freezeOn(runId, (asked) => isPage(listing)(asked) && ++pages === 2);
    service.now = all('new');
    await service.attempt(runId);
    await goOn();
    expect(await valuesIn(service, listing)).toEqual(['new', 'new']);
    service.now = all('new').slice(0, 1);
    await service.backfill();
    expect(await valuesIn(service, listing)).toEqual(['new', null]);
  });

  test('holds no row back that another attempt has found in the listing', async () => {
    const service = await serviceOf(listing, all('new'));
    await service.backfill();
    const runId = randomUUID();
    service.now = [];
    let pages = 0;
    const goOn = await service.freezeOn(runId, (asked) => isPage(listing)(asked) && ++pages === 2);
    service.now = all('new');
    await service.attempt(runId);
    await goOn();
    expect(await readDeletes(service.warehouse.db, { all: false })).toEqual([]);
  });
});

test.each(names)(
  '%s that are held back stay when a listing shows them again, although a person approves',
  async (listing) => {
    const [held, other] = [recordOf(listing, randomUUID(), 'held'), recordOf(listing, randomUUID(), 'other')];
    const service = await serviceOf(listing, [held]);
    const { db } = service.warehouse;
    await service.backfill();
    service.now = [];
    await service.backfill();
    const [deletion] = await readDeletes(db, { all: false });
    expect(deletion).toMatchObject({ resource: listing, rows: 1 });
    // The listing contains a record twice, so it is not proved, and the held row is not judged again.
    service.now = [held, other, other];
    await service.backfill();
    expect(await readDeletes(db, { all: false })).toEqual([]);
    expect(await approveDeletes(db, deletion?.runId ?? '')).toMatchObject({ tombstoned: 0 });
    expect((await valuesIn(service, listing)).sort()).toEqual(['held', 'other']);
  },
);

test('a frozen page is late, too, if another attempt continued its walk and read the page again', async () => {
  const all = (value: string) => ids.map((id) => recordOf('meters', id, value));
  const ids = Array.from({ length: 150 }, () => randomUUID()).sort();
  const service = await serviceOf('meters', all('new'));
  const { company } = service;
  await service.backfill();
  const runId = randomUUID();
  service.now = all('between');
  const goOn = await service.freezeOn(runId, isPage('meters', 2));
  service.now = all('new');
  const written = { inserted: 0, changed: 100, rejected: 0 };
  await service.attempt(runId, { resource: 'meters', companyId: company, pass: 1, page: 1, written });
  await goOn();
  expect((await valuesIn(service, 'meters')).slice(100)).toEqual(Array(50).fill('new'));
});

test('the pages of a walk that another attempt continues are as late as the walk', async () => {
  const ids = Array.from({ length: 150 }, () => randomUUID()).sort();
  const all = (value: string) => ids.map((id) => recordOf('meters', id, value));
  const service = await serviceOf('meters', all('new'));
  const { company, warehouse } = service;
  await service.backfill();
  const runId = randomUUID();
  const goOn = await service.freezeOn(runId, isPage('meters', 2));
  const began = await warehouseNow(warehouse.db);
  await proving(warehouse.db, { resource: 'meters', companyId: company, began });
  service.now = all('between');
  const written = { inserted: 0, changed: 0, rejected: 0 };
  await service.attempt(runId, { resource: 'meters', companyId: company, pass: 1, page: 1, written });
  expect(await valuesIn(service, 'meters')).toEqual(Array(150).fill('new'));
  await goOn();
  await service.backfill();
  expect(await valuesIn(service, 'meters')).toEqual(Array(150).fill('between'));
});

test('a frozen page of the list of companies brings back no older company or site', async () => {
  const [id, siteId] = [randomUUID(), randomUUID()];
  const named = (name: string) => [{ id, name, sites: [{ id: siteId, name }] }];
  const service = await serviceOf('companies', named('new'));
  await service.backfill();
  const runId = randomUUID();
  service.now = named('between');
  const goOn = await service.freezeOn(runId, ({ path }) => path === '/v2.2/company');
  service.now = named('new');
  await service.attempt(runId);
  await goOn();
  const { rows } = await service.warehouse.db.execute(
    sql`select c.name, s.name as site from utility.companies c join utility.sites s on s.company_id = c.id`,
  );
  expect(rows).toEqual([{ name: 'new', site: 'new' }]);
});
