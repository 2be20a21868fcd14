import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import { expect, test } from 'vitest';
import type { Warehouse } from '../../db/connection/connect.ts';
import { readDeletes } from '../../db/deletes/decide.ts';
import { recordEvents } from '../../db/events/record.ts';
import { warehouseNow } from '../../db/queue/due.ts';
import { tableOf } from '../../db/resources.ts';
import { audit } from '../../operations/audit/audit.ts';
import { pageOf } from '../service/listing.ts';
import type { Script } from '../service/scripted-server.ts';
import { setup } from '../service/setup.ts';
import { type ActivitiesUnderTest, activitiesOn } from '../support/activities.ts';
import { delivery, documentEvent } from '../support/events.ts';
import { writeRecords } from '../support/pages.ts';
import { shapeOf } from '../support/scripted-service.ts';

const resources = ['documents', 'connections', 'meters', 'usageData'] as const;
type Resource = (typeof resources)[number] | 'sites';

/** A record: which of the companies 0 and 1 it names, if any, and whose listings contain it. */
interface Plan {
  readonly resource: Resource;
  readonly names: 0 | 1 | null;
  readonly listedBy: readonly (0 | 1)[];
}

interface Held extends Plan {
  readonly id: string;
  readonly record: { readonly id: string };
}

const updated = '2026-05-01T00:00:00.000001';

/** Returns the ids of two companies, the smaller id first. */
const twoCompanies = (): [string, string] => [randomUUID(), randomUUID()].sort() as [string, string];

/** Makes the records. Meters and sites name no company. Usage names a document, which may name one. */
function holding(plans: readonly Plan[], companies: readonly string[]): Held[] {
  return plans.flatMap((plan): Held[] => {
    const id = randomUUID();
    const name = plan.names === null ? {} : { company: { id: companies[plan.names] } };
    if (plan.resource === 'meters' || plan.resource === 'sites')
      return [{ ...plan, names: null, id, record: { id } }];
    const record = { id, updated, ...name };
    if (plan.resource !== 'usageData') return [{ ...plan, id, record }];
    const document = { ...plan, resource: 'documents', id: randomUUID() } as const;
    const row = { id, updated, usage: '1', document: { id: document.id } };
    return [
      { ...document, record: { ...record, id: document.id } },
      { ...plan, id, record: row },
    ];
  });
}

const listingOf = (held: readonly Held[], resource: string, company: number) =>
  held.filter((plan) => plan.resource === resource && plan.listedBy.includes(company as 0 | 1));

/** A row: its owner, and the company whose record it has. */
interface Row extends Record<string, unknown> {
  readonly owner: string;
  readonly shownBy: string | null;
  readonly lives: boolean;
}

async function rowsOf({ db }: Pick<Warehouse, 'db'>, held: readonly Held[]) {
  const rows = new Map<string, Row>();
  for (const { resource, id } of held) {
    const found = await db.execute<Row>(sql`
      select company_id as owner, raw ->> 'shownBy' as "shownBy", deleted_at is null as lives
      from ${tableOf(resource)} where id::text = ${id}`);
    if (found.rows[0]) rows.set(id, found.rows[0]);
  }
  return rows;
}

/** Makes a service of two companies whose listings contain the records that are held at the moment. */
const serviceOf =
  (companies: readonly string[], held: () => readonly Held[], inList = (_: string) => true): Script =>
  ({ path, query }) => {
    const [, , kind, , id] = path.split('/');
    const listed = (resource: Resource, company: string) =>
      listingOf(held(), resource, companies.indexOf(company)).map(({ record }) => ({
        ...record,
        shownBy: company,
        ...(resource === 'connections' && { sitesRelations: [{ site: { id: company } }] }),
      }));
    if (kind === 'company') {
      const records = companies.filter(inList).map((id) => ({ id, sites: listed('sites', id) }));
      return pageOf(records, { query }, { key: 'companies', total: 'totalCompanies', perPage: 1 });
    }
    const paths = {
      connection: 'connections',
      document: 'documents',
      usage: 'usageData',
      meter: 'meters',
    } as const;
    const resource = paths[kind as keyof typeof paths];
    if (resource === undefined) return pageOf([], { query }, { key: 'intervals', total: 'totalIntervals' });
    return pageOf(listed(resource, id ?? ''), { query }, shapeOf(resource));
  };

async function backfill({ run, activities, warehouse }: ActivitiesUnderTest, companies: readonly string[]) {
  const runId = randomUUID();
  await run(activities.beginRun, { runId, kind: 'full' });
  for (const companyId of companies) await run(activities.readCompany, { runId, companyId });
  const { rows } = await warehouse.db.execute(sql`
    select state, rows_tombstoned::int as tombstoned, error
    from metersync.runs where run_id = ${runId}::uuid and resource = 'companies'`);
  return { runId, ...rows[0] };
}

test('a record that leaves one of two listings belongs to the other company unless it names its company, and is tombstoned once no listing contains it', async () => {
  const companies = twoCompanies();
  const both = { names: null, listedBy: [0, 1] } as const;
  const all = holding(
    [
      { resource: 'meters', ...both },
      { resource: 'documents', ...both, names: 0 },
      { resource: 'sites', ...both },
      { resource: 'connections', ...both },
    ],
    companies,
  );
  const other = holding(
    ([0, 1] as const).flatMap((company) =>
      (['meters', 'documents', 'sites', 'connections'] as const).map((resource) => ({
        resource,
        names: null,
        listedBy: [company],
      })),
    ),
    companies,
  );
  let listedBy: readonly (0 | 1)[] = [0, 1];
  const script = serviceOf(companies, () => [...other, ...all.map((plan) => ({ ...plan, listedBy }))]);
  const under = await activitiesOn(script);
  const { client } = await setup(script);
  const owners = async (order: readonly string[] = companies) => {
    const { runId } = await backfill(under, order);
    const { rows: deleted } = await under.warehouse.db.execute(
      sql`select from metersync.deletes where run_id = ${runId}::uuid`,
    );
    // Not even for a moment if another company is known to list it.
    expect(deleted).toHaveLength(listedBy.length === 0 ? all.length : 0);
    const options = { warehouse: under.warehouse, service: client, concurrency: 2 };
    expect(await audit(options)).toMatchObject({ differences: 0 });
    const rows = await rowsOf(under.warehouse, all);
    return all.map(({ id }) => {
      const row = rows.get(id);
      return row?.lives === true ? [row.owner, row.shownBy] : 'gone';
    });
  };
  const [first, second] = companies;
  const ofFirst = [first, first];
  const ofSecond = [second, second];
  expect(await owners(companies.toReversed())).toEqual([ofFirst, ofFirst, ofFirst, ofFirst]);
  listedBy = [1];
  expect(await owners()).toEqual([ofSecond, [first, second], ofSecond, ofSecond]);
  listedBy = [0];
  expect(await owners()).toEqual([ofFirst, ofFirst, ofFirst, ofFirst]);
  listedBy = [];
  expect(await owners()).toEqual(['gone', 'gone', 'gone', 'gone']);
  expect(await rowsOf(under.warehouse, other)).toEqual(
    new Map(other.map((plan) => [plan.id, expect.objectContaining({ lives: true })])),
  );
});

test('a document that is deleted for one company is restored by the listing of another one', async () => {
  const companies = twoCompanies();
  const [first, second] = companies;
  const staying = holding(
    ([0, 1] as const).map((company) => ({ resource: 'documents', names: null, listedBy: [company] })),
    companies,
  );
  const [moving] = holding([{ resource: 'documents', names: null, listedBy: [0] }], companies);
  let listedBy: readonly (0 | 1)[] = [0];
  const script = serviceOf(companies, () => [...staying, ...(moving ? [{ ...moving, listedBy }] : [])]);
  const under = await activitiesOn(script);
  await backfill(under, companies);
  const id = moving?.id ?? '';
  await under.warehouse.db.execute(sql`update utility.documents
    set absent_since = clock_timestamp(), absent_by = 'listed'
    where id = ${id}::uuid`);
  listedBy = [1];
  await backfill(under, [first]);
  await backfill(under, [second]);
  const rows = await rowsOf(under.warehouse, moving ? [moving] : []);
  expect(rows.get(id)).toMatchObject({ owner: second, shownBy: second, lives: true });
});

test('a record that moves is not left tombstoned by a read of its former company', async () => {
  const companies = twoCompanies();
  const [former, present] = companies;
  const plans = (['meters', 'documents', 'connections'] as const).map((resource) => ({
    resource,
    names: null,
    listedBy: [0] as const,
  }));
  const moving = holding(plans, companies);
  const staying = holding(plans, companies);
  let listedBy: readonly (0 | 1)[] = [0];
  const script = serviceOf(companies, () => [...staying, ...moving.map((plan) => ({ ...plan, listedBy }))]);
  const under = await activitiesOn(script);
  await backfill(under, companies);
  listedBy = [1];
  const readAt = await warehouseNow(under.warehouse.db);
  await backfill(under, [former]);
  expect([...(await rowsOf(under.warehouse, moving)).values()]).toEqual(
    moving.map(() => expect.objectContaining({ lives: false })),
  );
  // These records were read before the backfill, and are written after it.
  for (const { resource, record } of moving)
    if (resource !== 'sites')
      await writeRecords(under.warehouse, resource, [record], { companyId: present, readAt });
  expect([...(await rowsOf(under.warehouse, moving)).values()]).toEqual(
    moving.map(() => expect.objectContaining({ owner: present, lives: true })),
  );
});

test('the records of a deleted company are tombstoned and restored with it, unless another company lists them', async () => {
  const companies = twoCompanies();
  const [gone, other] = companies;
  const named = { resource: 'documents', names: 0, listedBy: [0, 1] } as const;
  const unnamed = ([[0], [1], [0, 1]] as const).flatMap((listedBy) =>
    resources.map((resource) => ({ resource, names: null, listedBy })),
  );
  let held = holding([named, ...unnamed], companies);
  let listed: readonly string[] = companies;
  const script = serviceOf(
    companies,
    () => held,
    (id) => listed.includes(id),
  );
  const under = await activitiesOn(script);
  const { db } = under.warehouse;
  const { client } = await setup(script);
  const owners = async () => {
    const run = await backfill(under, listed);
    const options = { warehouse: under.warehouse, service: client, concurrency: 2 };
    expect(await audit(options)).toMatchObject({ differences: 0 });
    const rows = await rowsOf(under.warehouse, held);
    const states = held.map(({ id, names, listedBy }) => {
      const by = listedBy.length === 2 ? 'both' : companies[listedBy[0] ?? 0];
      const row = rows.get(id);
      return [names === null ? by : 'named', row?.lives ? row.owner : 'gone'];
    });
    return { run, owners: Object.fromEntries(states), alike: new Set(states.map(String)).size };
  };
  const asListed = { owners: { [gone]: gone, [other]: other, both: gone, named: gone }, alike: 4 };
  const without = { owners: { [gone]: 'gone', [other]: other, both: other, named: gone }, alike: 4 };
  expect(await owners()).toMatchObject(asListed);

  const awaited = held.find(({ resource, listedBy }) => resource === 'documents' && listedBy.length === 1);
  const event = { ...documentEvent('updated', awaited?.id ?? '', updated), company: { id: gone } };
  await recordEvents(db, [delivery(event)]);
  listed = [other];
  expect(await owners()).toMatchObject({ ...without, run: { state: 'complete', tombstoned: 5 } });
  expect(under.sweeps()).toBe(1);

  // This is the state that earlier versions left.
  await db.execute(sql`update utility.documents set deleted_at = null, deleted_reason = null`);
  await db.execute(sql`update utility.usage_data set deleted_at = null, deleted_reason = null`);
  expect(await owners()).toMatchObject({ ...without, run: { state: 'complete', tombstoned: 2 } });

  listed = companies;
  expect(await owners()).toMatchObject(asListed);

  const more = holding(
    (['documents', 'sites'] as const).flatMap((resource) =>
      Array.from({ length: 4 }, () => ({ resource, names: null, listedBy: [0] as const })),
    ),
    companies,
  );
  held = [...held, ...more];
  await backfill(under, companies);
  listed = [other];
  // These are more rows than the cap allows, but the deletion of their company explains all of them.
  expect(await backfill(under, listed)).toMatchObject({ state: 'complete', tombstoned: 13, error: null });
  expect(await readDeletes(db, { all: false })).toEqual([]);
});

test('the records of a company of the settings stay even if the list no longer contains the company', async () => {
  const companies = twoCompanies();
  const [gone, other] = companies;
  const held = holding([{ resource: 'documents', names: null, listedBy: [0] }], companies);
  let listed: readonly string[] = companies;
  const script = serviceOf(
    companies,
    () => held,
    (id) => listed.includes(id),
  );
  const under = await activitiesOn(script, {}, { companies: [gone] });
  await backfill(under, listed);
  listed = [other];
  await backfill(under, listed);
  expect([...(await rowsOf(under.warehouse, held)).values()]).toMatchObject([{ lives: true }]);
});
