import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import { describe, expect, test } from 'vitest';
import { readDeletes } from '../../db/deletes/decide.ts';
import { recordEvents } from '../../db/events/record.ts';
import { tableOf } from '../../db/resources.ts';
import { audit } from '../../operations/audit/audit.ts';
import { pageOf } from '../service/listing.ts';
import type { Script } from '../service/scripted-server.ts';
import { setup } from '../service/setup.ts';
import { type ActivitiesUnderTest, activitiesOn, queues } from '../support/activities.ts';
import { delivery, documentEvent } from '../support/events.ts';
import { shapeOf } from '../support/scripted-service.ts';

/** What the service lists for each company; usage is listed with its company, too. */
type Listed = Record<string, { documents?: object[]; usageData?: object[]; meters?: object[] }>;

const script =
  (listed: Listed): Script =>
  ({ path, query }) => {
    const [, , kind, , id = ''] = path.split('/');
    if (kind === 'company') {
      const companies = Object.keys(listed).map((company) => ({ id: company, name: 'Acme', sites: [] }));
      return pageOf(companies, { query }, { key: 'companies', total: 'totalCompanies' });
    }
    if (kind === 'document' && id === '') {
      const all = Object.values(listed).flatMap(({ documents = [] }) => documents);
      const found = all.find((record) => (record as { id: string }).id === path.split('/')[3]);
      return found ? { body: JSON.stringify(found) } : { json: {}, status: 404 };
    }
    const resource = { document: 'documents', usage: 'usageData', meter: 'meters' }[kind ?? ''];
    if (resource === undefined && kind !== 'connection')
      return pageOf([], { query }, { key: 'intervals', total: 'totalIntervals' });
    const usage = Object.values(listed).flatMap(({ usageData = [] }) => usageData);
    const records =
      path.split('/')[3] === 'company'
        ? (listed[id]?.[resource as 'documents'] ?? [])
        : usage.filter((row) => (row as { document: { id: string } }).document.id === id);
    return pageOf(records, { query }, shapeOf((resource ?? 'connections') as 'documents'));
  };

async function backfill({ run, activities, warehouse }: ActivitiesUnderTest, listed: Listed) {
  const runId = randomUUID();
  await run(activities.beginRun, { runId, kind: 'full' });
  for (const companyId of Object.keys(listed).sort()) await run(activities.readCompany, { runId, companyId });
  const { rows } = await warehouse.db.execute<{ resource: string; state: string; error: string | null }>(sql`
    select resource, state, error
    from metersync.runs
    where run_id = ${runId}::uuid and company_id is not null and resource is not null`);
  return rows;
}

/** Lets the warehouse's last reads of documents and usage, and its deletions, lie hours in the past. */
const hoursPass = async ({ warehouse: { db } }: ActivitiesUnderTest): Promise<void> => {
  const before = (...columns: string[]) =>
    sql.raw(columns.map((column) => `${column} = ${column} - interval '3 hours'`).join());
  await db.execute(sql`update utility.documents set ${before('synced_at', 'deleted_at', 'hint_came')}`);
  await db.execute(sql`update utility.usage_data set ${before('synced_at', 'deleted_at')}`);
};

const rowsIn = async ({ warehouse: { db } }: ActivitiesUnderTest, resource: 'documents' | 'usageData') => {
  const { rows } = await db.execute(sql`
    select id, company_id, deleted_at is not null as deleted, raw ->> 'totalCharges' as amount
    from ${tableOf(resource)} order by id`);
  return rows;
};

const differences = async (under: ActivitiesUnderTest, listed: Listed) => {
  const { client } = await setup(script(listed));
  const report = await audit({ warehouse: under.warehouse, service: client, concurrency: 2 });
  return report.differences;
};

const updated = '2026-05-01T00:00:00.000001';
const twoCompanies = (): [string, string] => [randomUUID(), randomUUID()].sort() as [string, string];

describe.each([
  ['the same', updated],
  ['no', null],
  ['an older', '2026-04-01T00:00:00.000001'],
])('a document that an event deleted and its company lists again with %s `updated`', (_, again) => {
  test('is live with its new amount and its usage after the next backfill', async () => {
    const [company] = twoCompanies();
    const usage = { id: randomUUID(), usage: '10', updated };
    const document = { id: randomUUID(), updated, totalCharges: '10', usageData: [usage] };
    const listed: Listed = {
      [company]: { documents: [document], usageData: [{ ...usage, document: { id: document.id } }] },
    };
    const under = await activitiesOn((asked) => script(listed)(asked));
    await backfill(under, listed);
    await recordEvents(under.warehouse.db, [
      delivery({ ...documentEvent('deleted', document.id, updated), company: { id: company } }),
    ]);
    expect(await rowsIn(under, 'documents')).toMatchObject([{ deleted: true }]);
    expect(await rowsIn(under, 'usageData')).toMatchObject([{ deleted: true }]);

    await hoursPass(under);
    listed[company] = {
      ...listed[company],
      documents: [{ ...document, updated: again, totalCharges: '88' }],
    };
    const parts = await backfill(under, listed);
    expect(parts.map(({ state }) => state)).not.toContain('suspect');
    expect(await rowsIn(under, 'documents')).toMatchObject([{ deleted: false, amount: '88' }]);
    expect(await rowsIn(under, 'usageData')).toMatchObject([{ deleted: false }]);
    expect(await differences(under, listed)).toBe(0);
  });
});

test('a service that was restored from a backup is followed by the next backfill, which counts the records', async () => {
  const [company] = twoCompanies();
  const usage = { id: randomUUID(), usage: '10', updated };
  const document = { id: randomUUID(), updated, totalCharges: '10' };
  const listed: Listed = {
    [company]: { documents: [document], usageData: [{ ...usage, document: { id: document.id } }] },
  };
  const under = await activitiesOn((asked) => script(listed)(asked));
  await backfill(under, listed);
  await hoursPass(under);
  const older = '2026-04-01T00:00:00.000001';
  listed[company] = {
    documents: [{ ...document, updated: older, totalCharges: '7' }],
    usageData: [{ ...usage, usage: '7', updated: older, document: { id: document.id } }],
  };
  const parts = await backfill(under, listed);
  expect(parts).toContainEqual({
    resource: 'documents',
    state: 'complete',
    error: '1 record went back to an older state',
  });
  expect(await rowsIn(under, 'documents')).toMatchObject([{ amount: '7' }]);
  expect(await differences(under, listed)).toBe(0);
});

describe.each([
  ['another site in its record', true],
  ['exactly the same record', false],
])('a meter that moves to another company with %s', (_, hasOtherSite) => {
  test.each([
    ['to a company with a larger id', [0, 1]],
    ['to a company with a smaller id', [1, 0]],
  ] as const)(
    '%s belongs to it after the next backfill, and nothing is held back',
    async (_to, [from, to]) => {
      const companies = twoCompanies();
      const [former, present] = [companies[from], companies[to]];
      const meter = { id: randomUUID(), site: { id: randomUUID() } };
      const listed: Listed = { [former]: { meters: [meter] }, [present]: { meters: [] } };
      const under = await activitiesOn((asked) => script(listed)(asked));
      await backfill(under, listed);
      listed[former] = { meters: [] };
      listed[present] = { meters: [hasOtherSite ? { ...meter, site: { id: randomUUID() } } : meter] };
      await backfill(under, listed);
      const { rows } = await under.warehouse.db.execute(
        sql`select company_id, deleted_at from utility.meters`,
      );
      expect(rows).toEqual([{ company_id: present, deleted_at: null }]);
      expect(await readDeletes(under.warehouse.db, { all: false })).toEqual([]);
      expect(await differences(under, listed)).toBe(0);
    },
  );
});

test.each([
  ['a company that nobody knows', false],
  ['another company', true],
])('a signed event that names %s leaves a bill and its usage with their company', async (_, isKnown) => {
  const [company, other] = twoCompanies();
  const usage = { id: randomUUID(), usage: '10', updated };
  const document = { id: randomUUID(), updated, totalCharges: '10' };
  const listed: Listed = {
    [company]: { documents: [document], usageData: [{ ...usage, document: { id: document.id } }] },
    ...(isKnown ? { [other]: {} } : {}),
  };
  const under = await activitiesOn((asked) => script(listed)(asked));
  const { db } = under.warehouse;
  await backfill(under, listed);
  const now = new Date().toISOString().replace('Z', '');
  await recordEvents(db, [
    delivery({ ...documentEvent('updated', document.id, now), company: { id: other } }),
  ]);
  const unmoved = async () => {
    for (const resource of ['documents', 'usageData'] as const)
      expect(await rowsIn(under, resource)).toMatchObject([{ company_id: company, deleted: false }]);
    const { rows } = await db.execute(sql`select id from utility.companies order by id`);
    expect(rows.map(({ id }) => id)).toEqual(Object.keys(listed).sort());
  };
  await unmoved();
  const catchUp = async (): Promise<void> => {
    await under.run(under.activities.sweepOwners, { owners: queues('documents', [other, company]) });
    await db.execute(
      sql`update metersync.journal set due_at = now(), attempts = attempts + 8 where outcome = 'pending'`,
    );
    await unmoved();
  };
  await catchUp();
  const isComplete = async (): Promise<void> => {
    const parts = await backfill(under, listed);
    expect(new Set(parts.map(({ state }) => state))).toEqual(new Set(['complete']));
    await unmoved();
  };
  await isComplete();
  // The service never shows the announced state, and the event is given up.
  await catchUp();
  await catchUp();
  const { rows } = await db.execute(sql`select distinct outcome from metersync.events`);
  expect(rows).toEqual([{ outcome: 'missing' }]);
  await isComplete();
  expect(await differences(under, listed)).toBe(0);
});

test('a deletion that the service takes back is undone by the next event, once answers no longer lag', async () => {
  const [company] = twoCompanies();
  const document = { id: randomUUID(), updated };
  const listed: Listed = { [company]: { documents: [document] } };
  const under = await activitiesOn((asked) => script(listed)(asked));
  const announce = (type: 'updated' | 'deleted') =>
    recordEvents(under.warehouse.db, [
      delivery({ ...documentEvent(type, document.id, updated), company: { id: company } }),
    ]);
  await backfill(under, listed);
  await announce('deleted');
  await hoursPass(under);
  await announce('updated');
  await under.run(under.activities.sweepOwners, { owners: queues('documents', [company]) });
  expect(await rowsIn(under, 'documents')).toMatchObject([{ deleted: false }]);
});
