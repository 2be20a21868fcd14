import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import { expect, test } from 'vitest';
import { refreshDataIssues } from '../../db/checks/check-data.ts';
import { recordEvents } from '../../db/events/record.ts';
import { connectionsNeedingAttention, listConnections } from '../../db/read/companies.ts';
import { keepMonths } from '../../db/watch/months.ts';
import { BilledCompany } from '../support/bills.ts';
import { company, connectionEvent, delivery } from '../support/events.ts';
import { forFile } from '../support/for-file.ts';
import { writeRecords } from '../support/pages.ts';
import { blocksTouched } from '../support/plans.ts';
import { createWarehouse } from '../support/warehouse.ts';

const warehouse = await forFile(createWarehouse());

const january = { start: '2026-01-01', end: '2026-01-31' };

/** Makes a company with a billed meter, and a connection in this status that collects its bills. */
async function connected(status: string, more: object = {}): Promise<BilledCompany> {
  const company = new BilledCompany(warehouse);
  const meterId = randomUUID();
  await company.add({ [meterId]: {} });
  await company.bill([
    { billed: 1, usage: [{ meterId, ...january, usage: '310' }], more: { billDate: january.end } },
  ]);
  const connection = {
    id: randomUUID(),
    status,
    updated: '2026-02-01T00:00:00',
    datasource: { name: 'City Power' },
    statusFirstSeenTime: '2026-01-15T00:00:00.000001',
    accounts: [{ id: randomUUID(), accountNumber: 'A-1', meters: [meterId] }],
    ...more,
  };
  await writeRecords(warehouse, 'connections', [connection], { companyId: company.id });
  return company;
}

test.each([
  ['MFA_TOKEN_EXPIRED', 'needs_customer', 'customer', /disable multi-factor authentication/, true],
  ['PASSWORD_INCORRECT', 'needs_customer', 'customer', /password/, true],
  ['COMPANY_INACTIVE', 'inactive', 'inactive', /activated/, true],
  ['WEBSITE_DOWN', 'provider_problem', 'provider', /^ask the service$/, false],
  ['NEVER_HEARD_OF', 'unknown', 'utility', /^ask the service$/, false],
])(
  'a connection that is %s needs attention, has the class %s, and is late because of: %s',
  async (status, statusClass, cause, what, must) => {
    const company = await connected(status);
    expect(await company.rows('connections_needing_attention', 'connection_id')).toMatchObject([
      {
        company: 'Acme',
        status,
        status_class: statusClass,
        customer_must_act: must,
        is_late: true,
        since: '2026-01-15 00:00:00.000001+00',
        data_until: '2026-01-31',
        what_to_do: expect.stringMatching(what),
      },
    ]);
    expect(await company.rows('freshness', 'connection_id')).toMatchObject([
      {
        utility_published_until: '2026-01-31',
        next_bill_expected_on: '2026-03-19',
        cause_of_lateness: cause,
      },
    ]);
  },
);

const daysAgo = (days: number) => new Date(Date.now() - days * 86_400_000).toISOString();

test.each(
  ['WEBSITE_DOWN', 'NEVER_HEARD_OF'].flatMap((status) => [
    [status, 'for 6 days', daysAgo(6), 'wait a week, as the service tries again; then ask the service'],
    [status, 'for 8 days', daysAgo(8), 'ask the service'],
    [status, 'since an unknown day', '', 'ask the service'],
  ]),
)(
  'the view, the issue and the console say the same about a connection that is %s %s',
  async (status, _, since, what) => {
    const { db } = warehouse;
    const company = await connected(status, { statusFirstSeenTime: since });
    await refreshDataIssues(db, [company.id]);
    const issues = await db.execute<{ check_name: string; what: string }>(sql`
    select check_name, evidence ->> 'what_to_do' as what from ops.data_issues
    where company_id = ${company.id}::uuid and check_name in ('unhealthy_connection', 'unknown_status')`);
    const viewed = await company.rows('connections_needing_attention', 'connection_id');
    const { connections } = await connectionsNeedingAttention(db, { limit: 1_000 });
    const said = [
      ...viewed.map((row) => row.what_to_do),
      ...issues.rows.map((row) => row.what),
      ...connections.filter(({ companyId }) => companyId === company.id).map(({ whatToDo }) => whatToDo),
      ...(await listConnections(db, company.id)).map(({ whatToDo }) => whatToDo),
    ];
    const isFound = status === 'NEVER_HEARD_OF' || !what.startsWith('wait');
    expect(said).toEqual(Array.from({ length: isFound ? 4 : 3 }, () => what));
  },
);

test('a bill with several rows counts as one bill in the usual number of days between bills', async () => {
  const company = await connected('CONNECTED');
  const [{ meter_id: meterId } = {}] = await company.rows<{ meter_id: string }>('usage', 'usage_id');
  const of = (start: string, end: string) =>
    ['PEAK', 'OFF_PEAK', null].map((timeOfUse) => ({
      meterId: meterId ?? '',
      start,
      end,
      usage: '10',
      more: { timeOfUse },
    }));
  await company.bill([
    { billed: 2, usage: of('2026-02-01', '2026-02-28') },
    { billed: 3, usage: of('2026-03-01', '2026-03-31') },
  ]);
  expect(await company.rows('freshness', 'connection_id')).toMatchObject([
    {
      utility_published_until: '2026-03-31',
      usual_days_between_bills: '29.5',
      next_bill_expected_on: '2026-05-15',
    },
  ]);
});

test('reading how fresh a connection is does not cost more if its company has usage of other meters', async () => {
  const { id } = await connected('CONNECTED');
  const blocks = () =>
    blocksTouched(warehouse, sql`select * from analytics.freshness where company_id = ${id}::uuid`);
  const alone = await blocks();
  await warehouse.db.execute(sql`
    insert into utility.usage_data (id, company_id, raw)
    select gen_random_uuid(), ${id}::uuid, jsonb_build_object('meter', 'other ' || n)
    from generate_series(1, 20000) n`);
  expect(await blocks()).toBeLessThan(alone + 10);
});

test('the age of a status is from its record, or from a newer event', async () => {
  const id = randomUUID();
  const statusEvent = (at: string, status: string, old: string) =>
    delivery(connectionEvent('updated', id, at, status, old));
  await recordEvents(warehouse.db, [
    statusEvent('2026-01-10T00:00:00', 'MFA_TOKEN_EXPIRED', 'PENDING'),
    statusEvent('2026-02-01T00:00:00', 'CONNECTED', 'MFA_TOKEN_EXPIRED'),
  ]);
  const since = async (updated: string) => {
    const seen = { statusFirstSeenTime: '2026-06-01T00:00:00', status: 'MFA_TOKEN_EXPIRED', updated };
    await writeRecords(warehouse, 'connections', [{ id, ...seen }], {
      companyId: company.id,
      readAt: updated,
    });
    const { rows } = await warehouse.db.execute(
      sql`select since::text as since from analytics.connections_needing_attention where connection_id = ${id}::uuid`,
    );
    return rows;
  };
  expect(await since('2026-06-02T00:00:00Z')).toEqual([{ since: '2026-06-01 00:00:00+00' }]);
  await recordEvents(warehouse.db, [statusEvent('2026-07-01T00:00:00', 'CONNECTED', 'MFA_TOKEN_EXPIRED')]);
  await recordEvents(warehouse.db, [statusEvent('2026-07-09T00:00:00', 'MFA_TOKEN_EXPIRED', 'CONNECTED')]);
  expect(await since('2026-07-10T00:00:00Z')).toEqual([{ since: '2026-07-09 00:00:00+00' }]);
});

test('the list of connections that need attention has the order of the view: connections with which customers must act first, then the oldest', async () => {
  const { db } = warehouse;
  for (const [at, status] of [
    'OTHER_ERROR',
    'PASSWORD_INCORRECT',
    'NEVER_SEEN',
    'NO_ACCOUNTS_FOUND',
  ].entries())
    await connected(status, { statusFirstSeenTime: `2025-1${at % 3}-01T00:00:00` });
  await connected('PENDING');
  await connected('CONNECTED');
  const { rows } = await db.execute<{ id: string; status: string }>(sql`
    select connection_id as id, status
    from analytics.connections_needing_attention
    order by customer_must_act desc, connections_needing_attention.since nulls last, connection_id`);
  const listed = await connectionsNeedingAttention(db, { limit: 100 });
  expect(listed.connections.map(({ connectionId: id, status }) => ({ id, status }))).toEqual(rows);
  expect(listed.looked).toBe(rows.length);
  const [first] = listed.connections;
  expect(first).toMatchObject({ customerMustAct: true, dataUntil: '2026-01-31', isLate: true });
  const few = await connectionsNeedingAttention(db, { limit: 2 });
  expect(few.connections).toEqual(listed.connections.slice(0, 2));
  // The page of the company shows the same.
  const own = await listConnections(db, first?.companyId ?? '');
  expect(own).toMatchObject([{ since: first?.since, whatToDo: first?.whatToDo }]);
});

test.each(['soon', '2026-13-45T00:00:00', '2026-01-15T99:00:00', 5, { at: 1 }])(
  'an unreadable time (%j) is NULL and makes no view fail',
  async (statusFirstSeenTime) => {
    const company = await connected('COMPANY_INACTIVE', { statusFirstSeenTime });
    expect(await company.rows('connections_needing_attention', 'connection_id')).toMatchObject([
      { since: null },
    ]);
    expect(await company.rows('statement_availability', 'month')).toHaveLength(1);
    await refreshDataIssues(warehouse.db, [company.id]);
  },
);

test('a time is the same for readers in any time zone', async () => {
  for (const written of [
    '2026-01-15',
    '2026-01-15T00:00:00',
    '2026-01-15T01:30+0130',
    '2026-01-15 00:00:00.000Z',
  ]) {
    const read = await warehouse.db.transaction(async (tx) => {
      await tx.execute(sql`set local time zone 'Asia/Tokyo'`);
      const { rows } = await tx.execute(sql`select metersync.time_of(${written}) at time zone 'UTC' as time`);
      return rows;
    });
    expect(read, written).toEqual([{ time: '2026-01-15 00:00:00' }]);
  }
});

test('a healthy connection does not need attention', async () => {
  const company = await connected('CONNECTED');
  expect(await company.rows('connections_needing_attention', 'connection_id')).toEqual([]);
});

test('statements are counted by the reason why they count or not, and a month without statements has zero', async () => {
  const company = await connected('CONNECTED');
  const [meter] = await company.rows<{ meter_id: string }>('connection_meters', 'meter_id');
  const usage = (start: string, end: string) => [{ meterId: meter?.meter_id ?? '', start, end, usage: '1' }];
  const successor = randomUUID();
  const at = (billDate: string, more: object = {}) => ({ site: company.siteId, billDate, ...more });
  await company.bill([
    { billed: 2, usage: [], more: at('2026-03-31', { revisedDocumentId: successor }) },
    {
      id: successor,
      billed: 3,
      usage: usage('2026-03-01', '2026-03-31'),
      more: at('2026-03-31', { isFlagged: true }),
    },
  ]);
  const months = await company.rows('statement_availability', 'month');
  expect(new Set(months.map((row) => row.site_id))).toEqual(new Set([company.siteId]));
  expect(months.slice(0, 3)).toMatchObject([
    {
      month: '2026-01-01',
      bills: 1,
      included: 1,
      meters_expected: 1,
      meters_billed: 1,
      availability: '1.0000',
    },
    {
      month: '2026-02-01',
      bills: 0,
      included: 0,
      meters_expected: 1,
      meters_billed: 0,
      availability: '0.0000',
    },
    {
      month: '2026-03-01',
      bills: 2,
      included: 1,
      excluded_superseded: 1,
      included_flagged: 1,
      meters_billed: 1,
    },
  ]);
});

test.each([
  ['is late while one of its accounts goes on', [{ lastServiceDate: '2026-01-31' }, {}], '2026-03-19'],
  ['is not late after its accounts were closed', [{ lastServiceDate: '2026-01-31' }], null],
  [
    'is late if its accounts were closed after the last bill',
    [{ lastServiceDate: '2026-02-28' }],
    '2026-03-19',
  ],
  ['is not late if its accounts are not tracked', [{ trackingStatus: 'DISABLED' }], null],
])('a connection %s', async (_, [first, ...others], expected) => {
  const company = await connected('CONNECTED');
  await warehouse.db.execute(sql`
    update utility.connections
    set raw = jsonb_set(raw, '{accounts}', jsonb_build_array(raw #> '{accounts,0}' || ${JSON.stringify(first)}::jsonb)
      || ${JSON.stringify(others)}::jsonb)
    where company_id = ${company.id}::uuid`);
  const days_late = expected === null ? null : expect.any(Number);
  expect(await company.rows('freshness', 'connection_id')).toMatchObject([
    { utility_published_until: '2026-01-31', next_bill_expected_on: expected, days_late },
  ]);
});

const spring = ['2024-04-01', '2024-05-01', '2024-06-01'];
const account = { id: randomUUID(), trackingStatus: 'ENABLED', isTracked: true };

test.each([
  ['until now', {}, null],
  ['no longer if it is not tracked', { meter: { isTracked: false } }, []],
  ['until it was deleted', { deleted: ['meters', '2024-06-10'] }, spring],
  ['until its account was closed', { account: { lastServiceDate: '2024-06-01' } }, spring.slice(0, 2)],
  ['no longer if its account is disabled', { account: { trackingStatus: 'DISABLED' } }, []],
  ['no longer if its account is not tracked', { account: { trackingStatus: null, isTracked: false } }, []],
  ['until its site was archived', { site: { dataCollectionStopDate: '2024-06-01' } }, spring.slice(0, 2)],
  ['no longer if another meter of its account is billed', { isReplaced: true }, []],
  ['until its connection was deleted', { deleted: ['connections', '2024-04-02'] }, spring.slice(0, 1)],
  ['until its company was inactive', { connection: { status: 'COMPANY_INACTIVE' } }, spring.slice(0, 2)],
] as const)('bills of a meter without new bills are expected %s', async (_, facts, expected) => {
  const said: {
    meter?: object;
    account?: object;
    connection?: object;
    site?: object;
    deleted?: readonly string[];
    isReplaced?: boolean;
  } = facts;
  const silent = new BilledCompany(warehouse);
  const [meterId, id, successor] = [randomUUID(), randomUUID(), randomUUID()];
  // The other meter is at another site, so that its months are counted there.
  await silent.add({ [meterId]: said.meter ?? {}, [successor]: { site: randomUUID() } });
  const of = (billed: number, start: string, end: string, meter = meterId) => ({
    billed,
    usage: [{ meterId: meter, start, end, usage: '1' }],
    more: { billDate: end },
  });
  await silent.bill([
    ...(said.isReplaced ? [of(4, '2024-04-01', '2024-04-30', successor)] : []),
    of(1, '2024-01-01', '2024-01-31'),
    of(2, '2024-02-01', '2024-02-29'),
    of(3, '2024-03-01', '2024-03-31'),
  ]);
  const connection = {
    id,
    status: 'CONNECTED',
    statusFirstSeenTime: '2024-05-20T00:00:00',
    ...said.connection,
  };
  const accounts = [{ ...account, meters: [meterId, successor], ...said.account }];
  await writeRecords(warehouse, 'connections', [{ ...connection, accounts }], { companyId: silent.id });
  const [table = 'meters', at = null] = said.deleted ?? [];
  await warehouse.db.execute(
    sql`update utility.${sql.raw(table)} set deleted_at = ${at}::timestamptz where company_id = ${silent.id}::uuid`,
  );
  await warehouse.db.execute(sql`
    update utility.sites set raw = raw || ${JSON.stringify(said.site ?? {})}::jsonb
    where id = ${silent.siteId}::uuid`);
  await keepMonths(warehouse.db, { budgetSeconds: 60 });
  // There are usually 29 days between bills. A month is due if it began one and a half times as long ago.
  const { rows } = await warehouse.db.execute(sql`
    select array_agg(month::text order by month) filter (where availability = 1) as billed,
      coalesce(array_agg(month::text order by month) filter (where availability = 0), '{}') as silent,
      array(select generate_series(date '2024-04-01', current_date - 45, '1 month')::date::text) as due
    from analytics.statement_availability where company_id = ${silent.id}::uuid and site_id = ${silent.siteId}::uuid`);
  const [{ due } = { due: null }] = rows;
  expect(rows).toEqual([
    { billed: ['2024-01-01', '2024-02-01', '2024-03-01'], silent: expected ?? due, due },
  ]);
});

test.each([
  ['of an account that goes on is expected to be billed', {}, '0.0000'],
  ['of an account that is not tracked is not expected to be billed', { trackingStatus: 'DISABLED' }, null],
])('a month between two bills %s', async (_, more, availability) => {
  const gappy = new BilledCompany(warehouse);
  const meterId = randomUUID();
  await gappy.add({ [meterId]: {} });
  await gappy.bill(
    ['2024-01', '2024-03'].map((month, billed) => ({
      billed,
      usage: [{ meterId, start: `${month}-01`, end: `${month}-31`, usage: '1' }],
    })),
  );
  const accounts = [{ ...account, meters: [meterId], ...more }];
  await writeRecords(warehouse, 'connections', [{ id: randomUUID(), accounts }], { companyId: gappy.id });
  const months = await gappy.rows('statement_availability', 'month');
  const february = months.find(({ month }) => month === '2024-02-01');
  expect(february?.availability ?? null).toBe(availability);
});

test('there are no emissions without a factor, and the factor of the region is preferred', async () => {
  const company = await connected('CONNECTED');
  const emissions = async () =>
    (await company.rows('emissions_monthly', 'month')).map((row) => [row.usage, row.kg_co2e, row.version]);
  expect(await emissions()).toEqual([]);
  const factor = (region: string, value: string) => sql`
    insert into ops.emission_factors (region, datasource_type, scope, method, units, kg_co2e_per_unit, source, version)
    values (${region}, 'ELECTRICITY', 2, 'location', 'kWh', ${value}, 'test', '2026')`;
  await warehouse.db.execute(factor('', '0.5'));
  expect(await emissions()).toEqual([['310', '155.0', '2026']]);
  await warehouse.db.execute(factor('here', '0.1'));
  await warehouse.db.execute(
    sql`insert into ops.site_overrides (site_id, emission_region) values (${company.siteId}::uuid, 'here')`,
  );
  expect(await emissions()).toEqual([['310', '31.0', '2026']]);
});

test('an unknown time zone is refused with its name', async () => {
  const bad = warehouse.db.execute(
    sql`insert into ops.site_overrides (site_id, time_zone) values (gen_random_uuid(), 'Mars/Olympus')`,
  );
  await expect(bad).rejects.toMatchObject({ cause: { message: 'time zone "Mars/Olympus" not recognized' } });
});
