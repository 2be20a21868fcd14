import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import { expect, test } from 'vitest';
import { checkNames } from '../../contract/check-names.ts';
import { acknowledgeIssue, refreshDataIssues, refreshFieldIssues } from '../../db/checks/check-data.ts';
import { createFieldCatalogue } from '../../db/fields/field-catalogue.ts';
import { mostCounted } from '../../db/read/bounds.ts';
import { listDataIssues } from '../../db/read/issues.ts';
import { readStatus } from '../../db/read/status.ts';
import { countUnreadable } from '../../db/records/unreadable-values.ts';
import { keepMonths } from '../../db/watch/months.ts';
import { BilledCompany, type BillSaid, type UsageSaid } from '../support/bills.ts';
import { forFile } from '../support/for-file.ts';
import { untilLocked } from '../support/lock-waits.ts';
import { rowOf, writeRecords } from '../support/pages.ts';
import { began, writeReadings } from '../support/readings.ts';
import { createWarehouse } from '../support/warehouse.ts';

const warehouse = await forFile(createWarehouse());

const today = '2026-02-10';
const meterId = () => `meter/${randomUUID()}`;

async function companyWith(...meters: string[]): Promise<BilledCompany> {
  const company = new BilledCompany(warehouse);
  await company.add(Object.fromEntries(meters.map((id) => [id, {}])));
  return company;
}

interface Issue extends Record<string, unknown> {
  readonly check_name: string;
  readonly entity_id: string;
  readonly subject: string;
  readonly evidence: Record<string, unknown>;
  readonly open: boolean;
}

async function issues(company: BilledCompany): Promise<Issue[]> {
  const { rows } = await warehouse.db.execute<Issue>(sql`
    select check_name, severity, entity_type, entity_id, subject, evidence, closed_at is null as open
    from ops.data_issues where company_id = ${company.id}::uuid order by id`);
  return rows;
}

const check = (company: BilledCompany) => refreshDataIssues(warehouse.db, [company.id], { today });

/** The twelve months of 2025. A meter with a bill for each of them has no issue. */
const months = Array.from({ length: 12 }, (_, at) => ({
  start: new Date(Date.UTC(2025, at, 1)).toISOString().slice(0, 10),
  end: new Date(Date.UTC(2025, at + 1, 0)).toISOString().slice(0, 10),
}));
const january = { start: '2026-01-01', end: '2026-01-31' };

function billOf(
  meter: string,
  at: number,
  usage: Partial<UsageSaid> = {},
  more: Partial<BillSaid> = {},
): BillSaid {
  const days = months[at] ?? january;
  const dates = {
    startDate: usage.start ?? days.start,
    endDate: usage.end ?? days.end,
    billDate: usage.end ?? days.end,
  };
  return {
    billed: at,
    cost: `${100 + at}.00`,
    ...more,
    usage: [{ meterId: meter, ...days, usage: `${3000 + at * 7}`, ...usage }],
    more: { accountNumber: meter, utilityCompany: 'City Power', ...dates, ...more.more },
  };
}

const year = (meter: string): BillSaid[] => [...months, january].map((_, at) => billOf(meter, at));
/** Returns the bills of the year with another last bill. */
const withLast =
  (usage: Partial<UsageSaid>, more: Partial<BillSaid> = {}) =>
  (meter: string): BillSaid[] => [...year(meter).slice(0, 12), billOf(meter, 12, usage, more)];
/** Returns the bills of the year and one more bill. */
const withMore =
  (at: number, usage: Partial<UsageSaid>, more: Partial<BillSaid> = {}) =>
  (meter: string): BillSaid[] => [...year(meter), billOf(meter, at, usage, more)];

/** Tombstones the rows of a company, or restores them. */
const setDeleted = (company: BilledCompany, table: 'documents' | 'usage_data', deleted = true) =>
  warehouse.db.execute(sql`
    update utility.${sql.identifier(table)} set deleted_at = case when ${deleted} then now() end
    where company_id = ${company.id}::uuid`);

test('checks find no issues in correct data', async () => {
  const meter = meterId();
  const company = await companyWith(meter);
  await company.bill(year(meter));
  expect(await check(company)).toEqual({ opened: 0, closed: 0, stillOpen: 0 });
});

type Case = readonly [
  name: string,
  wrong: (meter: string) => BillSaid[],
  entity: 'document' | 'usage' | 'meter',
  evidence: object,
];

/** Cases with one fault in a bill of January or before. `entity` is the kind of record of the issue. */
test.each<Case>([
  [
    'bill_gap',
    (m) => year(m).filter((_, at) => at !== 5),
    'meter',
    { from: '2025-06-01', until: '2025-07-01', days: 30 },
  ],
  ['bill_overlap', withLast({ start: '2025-12-30' }), 'meter', { days: 2 }],
  ['duplicate_bill', withMore(12, {}, { billed: 13 }), 'document', { by: 'meters, days, usage and cost' }],
  [
    'unusual_period',
    (m) => [...year(m).slice(0, 10), billOf(m, 10, { end: '2026-01-31', usage: '9300' })],
    'document',
    { days: 92, usual_days: 31 },
  ],
  ['future_period', withMore(13, { start: '2026-02-01', end: '2026-02-28' }), 'document', {}],
  [
    'amount_mismatch',
    withLast(
      {},
      { more: { lineItems: [{ totalCharge: '100.00' }, { totalCharge: '9', billingPeriod: 'PREVIOUS' }] } },
    ),
    'document',
    { current_charges: 112.0, lines: 100.0 },
  ],
  [
    'usage_mismatch',
    withLast({}, { more: { usageData: [{ usage: '5', usageUnits: 'kWh' }] } }),
    'document',
    { on_document: 5 },
  ],
  ['usage_spike', withLast({ usage: '30000' }), 'document', { bills_before: 12 }],
  [
    'hidden_estimate',
    (m) => [
      ...year(m).slice(0, 9),
      ...[9, 10, 11].map((at) => billOf(m, at, { usage: at === 10 ? '3000' : '3100' })),
      billOf(m, 12),
    ],
    'meter',
    { per_day: 100 },
  ],
  ['zero_usage_with_cost', withLast({ usage: '0' }), 'document', { currency: 'USD' }],
  ['negative_usage', withLast({ usage: '-5' }), 'usage', { usage: -5 }],
  ['unit_changed', withLast({ usage: '3.1', units: 'MWh' }), 'usage', { units: 'MWh', before: 'kWh' }],
  ['currency_changed', withLast({}, { currency: 'CAD' }), 'document', { currency: 'CAD', before: 'USD' }],
  ['bad_dates', withLast({ end: '2026-01-01' }), 'usage', { quality: 'end_missing' }],
  ['late_bill', (m) => year(m).slice(0, 10), 'meter', { billed_until: '2025-11-01', usual_days: 31 }],
  ['orphan', withLast({ meterId: 'nowhere' }), 'usage', { meter: 'nowhere' }],
  [
    'unknown_unit',
    withMore(13, { units: 'furlongs', ...january }, { billed: 13 }),
    'meter',
    { units: 'furlongs' },
  ],
])(
  'checks find %s with its evidence, close the issue when the evidence is gone, and open a new one if it returns',
  async (name, wrong, entity, evidence) => {
    const meter = meterId();
    const company = await companyWith(meter);
    const said = wrong(meter).map((one) => ({ ...one, id: randomUUID() }));
    await company.bill(said);
    await check(company);
    const found = (await issues(company)).filter((issue) => issue.check_name === name);
    expect(found).toMatchObject([{ entity_type: entity, open: true, evidence }]);
    const [issue] = found;
    if (entity === 'document') expect(issue?.entity_id).toBe(said.at(-1)?.id);
    if (entity === 'meter') expect(issue?.entity_id).toBe(meter);
    const again = await check(company);
    expect(again).toMatchObject({ opened: 0, closed: 0 });

    for (const table of ['documents', 'usage_data'] as const) await setDeleted(company, table);
    expect(await check(company)).toMatchObject({ opened: 0, closed: again.stillOpen, stillOpen: 0 });
    for (const table of ['documents', 'usage_data'] as const) await setDeleted(company, table, false);
    expect(await check(company)).toMatchObject({ opened: again.stillOpen });
    const kept = (await issues(company)).filter((one) => one.check_name === name);
    expect(kept.map(({ open }) => open)).toEqual([false, true]);
  },
);

interface SentTwice {
  readonly account?: string;
  readonly provider?: string | null;
  readonly invoice?: string;
  readonly cost?: string;
  readonly usage?: Partial<UsageSaid>;
}
const byCharges = { by: 'meters, days, usage and cost' };
const byAccount = { by: 'account, provider and bill date' };
const byInvoice = { by: 'invoice number and provider' };

/** Each case has the bills that follow a bill of January with account A-1, invoice I-1 and 1,000 kWh for 100 USD. */
test.each<readonly [string, readonly SentTwice[], readonly object[]]>([
  ['with more digits', [{ account: 'B', invoice: 'X', usage: { usage: '1000.0' } }], [byCharges]],
  ['in MWh', [{ account: 'B', invoice: 'X', usage: { usage: '1', units: 'MWh' } }], [byCharges]],
  ['with the account in lower case', [{ account: 'a 1', invoice: 'X', cost: '7' }], [byAccount]],
  ['with another account and cost', [{ account: 'B', cost: '100.01' }], [byInvoice]],
  ['with another account and end', [{ account: 'B', usage: { end: '2026-02-01' } }], [byInvoice]],
  ['with the provider in capitals', [{ account: 'B', provider: 'CITY  POWER', cost: '7' }], [byInvoice]],
  ['with another cost, without a credit', [{ account: 'B', cost: '90' }], [byInvoice]],
  ['twice again', [{}, {}], [byCharges, byCharges]],
  ['of another provider', [{ account: 'B', provider: 'Other Power', cost: '7' }], []],
  ['with another invoice', [{ account: 'B', invoice: 'I-2', cost: '7' }], []],
  ['of no provider', [{ account: 'B', provider: null, cost: '7' }], []],
  ['for other usage at the same cost', [{ account: 'B', invoice: 'X', usage: { usage: '1001' } }], []],
  [
    'for another meter or month, with one invoice number',
    [
      { account: 'B', usage: { meterId: 'other' } },
      { account: 'C', usage: { start: '2025-12-01', end: '2025-12-31' } },
    ],
    [
      { ...byInvoice, severity: 'info' },
      { ...byInvoice, severity: 'info' },
    ],
  ],
  [
    'correctly, after a credit for it',
    [
      { cost: '-100', usage: { usage: '-1000' } },
      { cost: '90', usage: { usage: '900' } },
    ],
    [],
  ],
  ['as it was, after a credit for it', [{ cost: '-100.00', usage: { usage: '-1000' } }, {}], []],
  ['twice, after one credit', [{ cost: '-100', usage: { usage: '-1000' } }, {}, {}], [byCharges]],
  ['with a credit for a part', [{ cost: '-20', usage: { usage: '-200' } }], []],
])('a bill that is sent %s is compared with the earlier bills', async (_, more, expected) => {
  const meter = meterId();
  const company = await companyWith(meter);
  const [first, ...others] = await company.bill(
    [{}, ...more].map(
      ({ account = 'A-1', provider = 'City Power', invoice = 'I-1', cost = '100', usage }, at) =>
        billOf(
          meter,
          12,
          { usage: '1000', ...usage },
          {
            billed: at,
            cost,
            more: { accountNumber: account, utilityCompany: provider, invoiceId: invoice },
          },
        ),
    ),
  );
  await check(company);
  const found = (await issues(company)).filter((issue) => issue.check_name === 'duplicate_bill');
  expect(found.map(({ evidence: { same_as: _same, ...evidence } }) => evidence)).toEqual(expected);
  for (const { entity_id: id, evidence, severity } of found) {
    expect(others).toContain(id);
    expect([first, ...others]).toContain(evidence.same_as);
    expect(severity).toBe(evidence.severity ?? 'error');
  }
});

interface Ended {
  readonly account?: object;
  readonly meter?: object;
  readonly site?: object;
  readonly connection?: object;
  /** Months of another meter of the account. */
  readonly other?: readonly number[];
  /** A bill for one day that follows. */
  readonly last?: string;
}
const late = ['late_bill', ''];
const june = ['bill_gap', '2025-06-01'];

/** A meter is billed until the end of October 2025, without June. */
test.each<readonly [string, Ended, readonly (readonly string[])[]]>([
  ['while its account goes on', {}, [june, late]],
  ['if its account is disabled', { account: { trackingStatus: 'DISABLED' } }, []],
  ['if its account is not tracked', { account: { isTracked: false } }, []],
  [
    'if its account is tracked by the newer field',
    { account: { isTracked: false, trackingStatus: 'ENABLED' } },
    [june, late],
  ],
  ['if the customer does not track its account', { account: { status: 'CUSTOMER_NOT_TRACKED' } }, []],
  ['if it is not tracked itself', { meter: { isTracked: false } }, []],
  ['if its account was closed with its last bill', { account: { lastServiceDate: '2025-10-31' } }, [june]],
  ['if its account was closed a day later', { account: { lastServiceDate: '2025-11-02' } }, [june]],
  ['if its account was closed a month later', { account: { lastServiceDate: '2025-11-30' } }, [june, late]],
  ['if its account was closed before the gap', { account: { lastServiceDate: '2025-05-31' } }, []],
  [
    'if a correction follows its final bill',
    { account: { lastServiceDate: '2025-10-31' }, last: '2025-12-20' },
    [june],
  ],
  ['if its site was archived', { site: { dataCollectionStopDate: '2025-10-31' } }, [june]],
  ['if its connection was deleted', { connection: { deleted_at: '2025-11-01' } }, [june]],
  ['if another meter of its account follows', { other: [10, 11, 12] }, [june]],
  ['if another meter shares its last bill', { other: [9, 10, 11, 12] }, [june]],
  ['if a correction follows the exchange', { other: [10, 11, 12], last: '2025-12-20' }, [june]],
  ['if another meter of its account was there before', { other: [0, 1, 2, 10, 11, 12] }, [june, late]],
  [
    'if another meter begins with the gap and it goes on',
    { other: [5, 6, 7, 8, 9, 10, 11, 12] },
    [june, late],
  ],
])(
  'bills of a meter are missing %s',
  async (_, { account, meter, site, connection, other = [], last }, expected) => {
    const [id, replacement] = [meterId(), meterId()];
    const company = new BilledCompany(warehouse);
    await company.add({ [id]: meter ?? {}, [replacement]: {} });
    const accounts = [{ id: randomUUID(), accountNumber: '1', meters: [id, replacement], ...account }];
    const connected = { id: randomUUID(), status: 'CONNECTED', accounts };
    await writeRecords(warehouse, 'connections', [connected], { companyId: company.id });
    await warehouse.db.execute(sql`
    update utility.connections set deleted_at = ${Object.values(connection ?? {})[0] ?? null}::timestamptz
    where id = ${connected.id}::uuid`);
    await warehouse.db.execute(sql`
    update utility.sites set raw = raw || ${JSON.stringify(site ?? {})}::jsonb where id = ${company.siteId}::uuid`);
    await company.bill([
      ...[0, 1, 2, 3, 4, 6, 7, 8, 9].map((at) => billOf(id, at)),
      ...other.map((at) => billOf(replacement, at)),
      ...(last === undefined ? [] : [billOf(id, 13, { start: last, end: last })]),
    ]);
    await check(company);
    const found = (await issues(company)).filter(
      (issue) => issue.entity_id === id && /gap|late/.test(issue.check_name),
    );
    expect(found.map((issue) => [issue.check_name, issue.subject]).sort()).toEqual(expected);
  },
);

test('amounts of missing bills can be added, for several meters of a bill and several accounts', async () => {
  const [one, two, three, single] = [meterId(), meterId(), meterId(), meterId()];
  const company = await companyWith(one, two, three, single);
  // A day costs 31 USD in the account of three meters, and 5 USD in the account of one meter.
  const bills = months.flatMap(({ start, end }, at) => {
    const days = Number(end.slice(8));
    const of = (account: string, cost: number, meters: readonly string[]): BillSaid => ({
      billed: at,
      cost: `${cost}`,
      usage: meters.map((meter) => ({ meterId: meter, start, end, usage: `${100 + at}` })),
      more: { accountNumber: account, billDate: end },
    });
    return [of('A', 31 * days, [one, two, three]), of('B', 5 * days, [single])];
  });
  // The bills of June are missing, for 30 days.
  await company.bill(bills.filter(({ billed }) => billed !== 5));
  await check(company);
  const { rows } = await warehouse.db.execute(sql`
    select count(*)::int as issues, currency, sum(may_cost)::text as may_cost,
      array_agg(distinct sentence order by sentence) as sentences
    from ops.open_issues where company_id = ${company.id}::uuid and may_cost is not null group by currency`);
  const gap = 'No bill covers 2025-06-01 to 2025-06-30 (30 days: about 1 bill, some';
  expect(rows).toEqual([
    {
      issues: 4,
      currency: 'USD',
      may_cost: `${30 * (31 + 5)}.00`,
      sentences: [`${gap} 150 USD).`, `${gap} 310 USD for this meter).`],
    },
  ]);
});

test('checks report a connection as unhealthy after a week, and name an undocumented status', async () => {
  const company = await companyWith();
  const connection = (status: string, since: string) => ({
    id: randomUUID(),
    status,
    updated: '2026-02-01T00:00:00',
    datasource: { name: 'City Power' },
    accounts: [],
    statusFirstSeenTime: since,
  });
  const connections = [
    connection('MFA_TOKEN_EXPIRED', '2026-01-15T00:00:00'),
    connection('MFA_TOKEN_EXPIRED', '2026-02-09T00:00:00'),
    connection('CONNECTED', '2026-01-01T00:00:00'),
    connection('ON_HOLIDAY', '2026-02-09T00:00:00'),
  ];
  await writeRecords(warehouse, 'connections', connections, { companyId: company.id });
  await check(company);
  const found = (await issues(company)).map((one) => [one.check_name, one.entity_id, one.subject]);
  expect(found.sort()).toEqual(
    [
      ['unhealthy_connection', connections[0]?.id, 'MFA_TOKEN_EXPIRED'],
      ['unknown_status', connections[3]?.id, 'ON_HOLIDAY'],
    ].sort(),
  );
});

test('checks judge the remaining fields of a record that lacks half of its fields', async () => {
  const meter = meterId();
  const company = await companyWith(meter);
  await company.bill(year(meter));
  const loose = (at: number, more: object) => ({
    id: randomUUID(),
    meter,
    updated: `2026-02-0${at}T00:00:00`,
    ...more,
  });
  const spike = { usage: '999999', usageUnits: 'kWh', startDate: '2026-02-01', endDate: '2026-02-05' };
  await writeRecords(warehouse, 'usageData', [loose(1, spike), loose(2, {}), loose(3, { usage: '1' })], {
    companyId: company.id,
  });
  await writeRecords(warehouse, 'documents', [{ id: randomUUID(), updated: '2026-02-01T00:00:00' }], {
    companyId: company.id,
  });
  await writeRecords(warehouse, 'connections', [{ id: randomUUID(), updated: '2026-02-01T00:00:00' }], {
    companyId: company.id,
  });
  await check(company);
  const found = (await issues(company)).map((issue) => issue.check_name);
  expect(found).toEqual(['bad_dates', 'bad_dates', 'unknown_unit']);
});

test('checks name a value that no column can hold, with its record and text, until it is corrected', async () => {
  const company = await companyWith();
  const ids = Array.from({ length: 6 }, () => randomUUID());
  const [site = '', connection = '', meter = '', document = '', usage = ''] = ids;
  const read = { companyId: company.id };
  const later = { ...read, readAt: '2100-01-01T00:00:00Z' };
  const companies = [{ id: company.id, name: 'x'.repeat(600), sites: [{ id: site }, { id: 'nowhere' }] }];
  const of = { updated: '2026-02-01T00:00:00', created: '2026-02-30T01:02:03' };
  await writeRecords(warehouse, 'companies', companies, later);
  await writeRecords(warehouse, 'sites', companies, later);
  await writeRecords(warehouse, 'connections', [{ id: connection, ...of }], read);
  await writeRecords(warehouse, 'meters', [{ id: meter, site: 'main street' }], read);
  await writeRecords(warehouse, 'documents', [{ id: document, ...of }], read);
  await writeRecords(warehouse, 'usageData', [{ id: usage, usage: 'N/A', startDate: '' }], read);
  await check(company);
  const unreadable = (await issues(company)).filter((one) => one.check_name === 'unreadable_value');
  expect(
    unreadable.map((one) => [one.entity_type, one.entity_id, one.subject, one.evidence.text]).sort(),
  ).toEqual(
    [
      ['company', company.id, 'name', 'x'.repeat(200)],
      ['company', company.id, 'sites', 'nowhere'],
      ['connection', connection, 'created', of.created],
      ['document', document, 'created', of.created],
      ['meter', meter, 'site', 'main street'],
      ['usage', usage, 'usage', 'N/A'],
    ].sort(),
  );
  const { rows } = await warehouse.db.execute(sql`
    select sentence from ops.open_issues where company_id = ${company.id}::uuid
      and check_name = 'unreadable_value' and bill_id = ${document}::uuid`);
  expect(rows).toEqual([{ sentence: `The created of the document cannot be read: "${of.created}".` }]);
  await writeRecords(warehouse, 'usageData', [{ id: usage, usage: '7' }], later);
  await check(company);
  const corrected = (await issues(company)).filter(
    (one) => one.check_name === 'unreadable_value' && !one.open,
  );
  expect(corrected).toMatchObject([{ entity_id: usage }]);
});

test('checks name a text with characters that Postgres cannot hold, until it is read without them', async () => {
  const company = await companyWith();
  const [site, document, usage] = [randomUUID(), randomUUID(), randomUUID()];
  const read = { companyId: company.id };
  const later = { ...read, readAt: '2100-01-01T00:00:00Z' };
  const found = async () => {
    await check(company);
    const open = (await issues(company)).filter((one) => one.check_name === 'unreadable_value' && one.open);
    return open.map((one) => [one.entity_type, one.entity_id, one.subject, one.evidence.text]).sort();
  };
  const companies = [{ id: company.id, name: 'Acme', sites: [{ id: site, name: 'a\0b' }] }];
  await writeRecords(warehouse, 'companies', companies, later);
  await writeRecords(warehouse, 'sites', companies, later);
  const long = `\udc00${'x'.repeat(1_000)}`;
  const usageData = [{ id: randomUUID() }, { id: usage, note: { of: long } }];
  await writeRecords(warehouse, 'documents', [{ id: document, usageData }], read, true);
  const cut = String.raw`\udc00${'x'.repeat(194)}`;
  expect(await found()).toEqual(
    [
      ['company', company.id, 'sites[0].name', String.raw`a\u0000b`],
      ['site', site, 'name', String.raw`a\u0000b`],
      ['document', document, 'usageData[1].note.of', cut],
      ['usage', usage, 'note.of', cut],
    ].sort(),
  );
  expect(await rowOf(warehouse, 'usageData', usage)).toMatchObject({
    raw: { note: { of: `\ufffd${'x'.repeat(1_000)}` } },
    unreadable: { 'note.of': String.raw`\udc00${'x'.repeat(1_000)}` },
  });
  const clean = [{ id: document, usageData: [{ id: usage, note: { of: 'x' } }] }];
  await writeRecords(warehouse, 'documents', clean, later, true);
  expect((await found()).map(([type]) => type)).toEqual(['company', 'site']);
});

test('checks name an undocumented commodity', async () => {
  const company = new BilledCompany(warehouse);
  const ids = [meterId(), meterId()];
  await company.add({
    [ids[0] ?? '']: { datasourceType: 'STARLIGHT' },
    [ids[1] ?? '']: { datasourceType: 'GAS' },
  });
  await check(company);
  expect(await issues(company)).toMatchObject([
    { check_name: 'unknown_commodity', entity_type: 'meter', entity_id: ids[0], subject: 'STARLIGHT' },
  ]);
});

test('checks move an issue with its record to another company, and keep its note', async () => {
  const companies = [await companyWith(), await companyWith()];
  const [to, from] = companies.sort((a, b) => (a.id < b.id ? -1 : 1)) as [BilledCompany, BilledCompany];
  const meter = meterId();
  await from.add({ [meter]: { datasourceType: 'STARLIGHT' } });
  await check(from);
  const { db } = warehouse;
  const [issue] = await listDataIssues(db, { companyId: from.id, unacknowledged: true }, 10);
  await acknowledgeIssue(db, issue?.id ?? 0, { note: 'odd' });
  await db.execute(sql`update utility.meters set company_id = ${to.id}::uuid where id = ${meter}`);
  await refreshDataIssues(db, [to.id, from.id], { today });
  expect(await listDataIssues(db, { companyId: to.id, unacknowledged: false }, 10)).toMatchObject([
    { id: issue?.id, acknowledgedNote: 'odd' },
  ]);
  expect(await listDataIssues(db, { companyId: from.id, unacknowledged: false }, 10)).toEqual([]);
});

test('checks find gaps in readings, days with the wrong number of hours, and differences from bills', async () => {
  const meter = meterId();
  const company = await companyWith(meter);
  await warehouse.db.execute(
    sql`insert into ops.site_overrides (site_id, time_zone) values (${company.siteId}::uuid, 'Europe/Berlin')`,
  );
  await warehouse.db.execute(sql`select metersync.ensure_interval_month(month) from generate_series(
    timestamptz '2026-02-15', timestamptz '2026-04-15', '1 month') month`);
  // March 2026 has 743 hours in Berlin. Here the day of 23 hours has 24 readings, and two days have none.
  // Checks leave out the first and last day of the meter, here 10 hours of April 2. Otherwise the coverage of
  // April would be an issue.
  await warehouse.db.execute(sql`
    insert into utility.intervals (meter_id, start_at, granularity_seconds, usage_units, usage, quality, synced_at)
    select ${meter}, at, 3600, 'kWh', 1, 'ACTUAL', now()
    from generate_series(timestamptz '2026-02-28 23:00+00', '2026-04-02 07:00+00', '1 hour') at
    where (at at time zone 'Europe/Berlin')::date not in ('2026-03-10', '2026-03-11')
    union all select ${meter}, timestamptz '2026-03-29 00:30+00', 3600, 'kWh', 1, 'SUNNY', now()`);
  // The last bill has three rows that are summed, one of them as an exclusion, and a demand. Readings in kW
  // are not summed.
  await warehouse.db.execute(sql`
    insert into utility.intervals (meter_id, start_at, granularity_seconds, usage_units, usage, quality, synced_at)
    select meter_id, start_at, 3600, 'kW', 1, 'ACTUAL', now() from utility.intervals
    where meter_id = ${meter} and start_at >= '2026-03-25 23:00+00' and start_at < '2026-03-28 23:00+00'`);
  const parts = [
    { usage: '24', units: 'kWh', more: { timeOfUse: 'PEAK' } },
    { usage: '58', units: 'kWh', more: { timeOfUse: 'OFF_PEAK', isEstimated: true } },
    { usage: '10', units: 'kWh', more: { exclusion: true } },
    { usage: '15', units: 'KW' },
  ].map((part) => ({ meterId: meter, start: '2026-03-26', end: '2026-03-28', ...part }));
  await company.bill([
    billOf(meter, 0, { start: '2026-03-12', end: '2026-03-20', usage: '216' }),
    billOf(meter, 1, { start: '2026-03-21', end: '2026-03-25', usage: '100' }),
    { billed: 2, usage: parts },
  ]);
  expect(await company.rows('bill_interval_comparison', 'period')).toMatchObject([
    { billed_usage: '216', interval_usage: '216', difference: '0' },
    { billed_usage: '100', interval_usage: '120' },
    { billed_usage: '72', interval_usage: '72', interval_coverage: '1.0000', is_estimated: true },
  ]);
  await check(company);
  const found = (await issues(company)).filter(({ check_name: name }) => /interval|clock|quality/.test(name));
  expect(found).toMatchObject([
    {
      check_name: 'clock_change',
      subject: '2026-03-29 kWh',
      evidence: { readings: 24, expected: 23, time_zone: 'Europe/Berlin' },
    },
    { check_name: 'interval_bill_mismatch', evidence: { billed: 100, readings: 120 } },
    { check_name: 'interval_coverage', subject: '2026-03 kWh', evidence: { coverage: 0.9332 } },
    { check_name: 'unknown_quality', entity_id: meter, subject: 'SUNNY', evidence: { readings: 1 } },
  ]);
});

test('checks that do not run close no issue', async () => {
  const meter = meterId();
  const company = await companyWith(meter);
  await company.bill(year(meter).filter((_, at) => at !== 5));
  await check(company);
  await setDeleted(company, 'documents');
  const nothing = { opened: 0, closed: 0, stillOpen: 0 };
  const { db } = warehouse;
  expect(await refreshDataIssues(db, [company.id], { kinds: ['intervals'], today })).toEqual(nothing);
  expect(await refreshDataIssues(db, [], { today })).toEqual(nothing);
});

test('checks write an open issue again only if it changed or on another day', async () => {
  const { db } = warehouse;
  const meter = meterId();
  const company = await companyWith(meter);
  await company.bill(year(meter).filter((_, at) => at !== 5));
  const read = async () =>
    (
      await db.execute<{ version: string; evidence: object; isOfToday: boolean }>(sql`
        select xmin::text as version, evidence, last_seen_at >= current_date as "isOfToday"
        from ops.data_issues where company_id = ${company.id}::uuid`)
    ).rows;
  const stillOpen = { opened: 0, closed: 0, stillOpen: 1 };
  await check(company);
  const first = await read();
  expect(await check(company)).toEqual(stillOpen);
  expect(await read()).toEqual(first);
  for (const change of [sql`evidence = '{}'`, sql`last_seen_at = last_seen_at - interval '1 day'`]) {
    await db.execute(sql`update ops.data_issues set ${change} where company_id = ${company.id}::uuid`);
    expect(await check(company)).toEqual(stillOpen);
    expect(await read()).toEqual([{ ...first[0], version: expect.any(String) }]);
  }
});

test('a check that is off opens no issue, and its open issues of all companies are closed with the reason', async () => {
  const [meter, elsewhere] = [meterId(), meterId()];
  const [company, other] = [await companyWith(meter), await companyWith(elsewhere)];
  await company.bill(year(meter).filter((_, at) => at !== 5));
  await other.bill(year(elsewhere).filter((_, at) => at !== 5));
  const states = async (of: BilledCompany) =>
    (
      await warehouse.db.execute<{ state: string }>(sql`
        select concat_ws(' ', check_name, case when closed_at is null then 'open' end, closed_reason) as state
        from ops.data_issues where company_id = ${of.id}::uuid order by id`)
    ).rows.map(({ state }) => state);
  await check(other);
  expect(await states(other)).toEqual(['bill_gap open']);
  const off = ['bill_gap'] as const;
  expect(await refreshDataIssues(warehouse.db, [company.id], { off, today })).toMatchObject({ opened: 0 });
  expect(await states(company)).toEqual([]);
  expect(await states(other)).toEqual(['bill_gap check_off']);
  expect(await check(other)).toEqual({ opened: 1, closed: 0, stillOpen: 0 });

  await setDeleted(other, 'usage_data');
  await check(other);
  expect((await states(other)).slice(0, 2)).toEqual(['bill_gap check_off', 'bill_gap evidence_gone']);
});

test('checks keep an acknowledged issue with its note open and count it separately, and an issue that returns is new', async () => {
  const meter = meterId();
  const company = await companyWith(meter);
  const { db } = warehouse;
  await company.bill(year(meter).filter((_, at) => at !== 5 && at !== 8));
  await check(company);
  const list = (unacknowledged = false) => listDataIssues(db, { companyId: company.id, unacknowledged }, 10);
  const before = (await readStatus(db)).issues;
  const [issue, later] = await list();
  const id = issue?.id ?? 0;
  expect(await acknowledgeIssue(db, id, { note: 'exchanged' })).toBe(true);
  expect(await acknowledgeIssue(db, id, {})).toBe(true);
  expect((await readStatus(db)).issues).toEqual({
    ...before,
    warning: before.warning - 1,
    acknowledged: before.acknowledged + 1,
  });
  await check(company);
  expect((await list()).map((one) => [one.id, one.acknowledgedNote])).toEqual([
    [later?.id, null],
    [id, 'exchanged'],
  ]);
  expect((await list(true)).map((one) => one.id)).toEqual([later?.id]);
  expect(await acknowledgeIssue(db, id, { undo: true })).toBe(true);
  expect((await readStatus(db)).issues).toEqual(before);

  await acknowledgeIssue(db, id, { note: 'exchanged' });
  await setDeleted(company, 'usage_data');
  await check(company);
  expect(await acknowledgeIssue(db, id, {})).toBe(false);
  await setDeleted(company, 'usage_data', false);
  await check(company);
  const anew = await list(true);
  expect(anew.map((one) => one.subject).sort()).toEqual([issue?.subject, later?.subject].sort());
  expect(anew.every((one) => one.acknowledgedNote === null && one.id > id)).toBe(true);
});

test('checks of a company that run at the same time wait for one another and open no issue twice', async () => {
  const [meter, elsewhere] = [meterId(), meterId()];
  const [company, other] = [await companyWith(meter), await companyWith(elsewhere)];
  await company.bill(year(meter).filter((_, at) => at !== 5));
  const { db } = warehouse;
  let second: Promise<unknown> | undefined;
  let done = false;
  await db.transaction(async (tx) => {
    expect(await refreshDataIssues(tx, [company.id], { today })).toMatchObject({ opened: 1 });
    second = check(company).finally(() => {
      done = true;
    });
    // Another company can be checked meanwhile.
    await check(other);
    await untilLocked(db, 'the second waits for the first');
    expect(done).toBe(false);
  });
  expect(await second).toEqual({ opened: 0, closed: 0, stillOpen: 1 });
  expect(await issues(company)).toMatchObject([{ check_name: 'bill_gap', open: true }]);

  const opened = await Promise.all(
    [0, 1, 2].map(() => refreshDataIssues(db, [company.id, other.id], { today })),
  );
  expect(opened.map((one) => one.opened)).toEqual([0, 0, 0]);
});

test('checks report the same difference of readings and bills as the view that compares them', async () => {
  const { rows } = await warehouse.db.execute(sql`
    select i.evidence
    from ops.data_issues i
      join analytics.bill_interval_comparison c on c.usage_id::text = i.entity_id
    where i.check_name = 'interval_bill_mismatch'
      and i.evidence = jsonb_build_object(
        'billed', c.billed_usage, 'readings', c.interval_usage, 'units', c.units,
        'relative_difference', c.relative_difference, 'bill', c.bill_id)`);
  expect(rows).toHaveLength(1);
});

test('checks report amounts that are too long to multiply, which stay in their records and make no view fail', async () => {
  const meter = meterId();
  const company = await companyWith(meter);
  const digits = '9'.repeat(999);
  const places = `0.${'1'.repeat(900)}`;
  const ids = await company.bill([
    billOf(meter, 0, { usage: digits, units: 'MWh' }, { cost: digits }),
    billOf(meter, 1, { usage: places, units: 'MWh' }, { cost: '5.00' }),
    billOf(meter, 1, { usage: `-${digits}`, units: 'MWh' }, { cost: '5.00' }),
    billOf(meter, 2, { usage: '7', units: 'MWh' }, { cost: '5.00' }),
  ]);
  await warehouse.db.execute(sql`select metersync.ensure_interval_month('2026-01-01')`);
  await warehouse.db.execute(sql`
    insert into utility.intervals (meter_id, start_at, granularity_seconds, usage_units, usage, quality, synced_at)
    values (${meter}, '2026-01-01 00:00Z', 900, 'MWh', ${digits}::numeric, null, now()),
      (${meter}, '2026-01-01 00:15Z', 900, 'MWh', 2, 'ACTUAL', now())`);
  const { rows: views } = await warehouse.db.execute<{ name: string }>(sql`
    select c.oid::regclass::text as name
    from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attname = 'company_id'
    where c.relkind = 'v' and c.relnamespace in ('analytics'::regnamespace, 'ops'::regnamespace)`);
  expect(views.length).toBeGreaterThan(20);
  await keepMonths(warehouse.db, { budgetSeconds: 60 });
  // The views are read for all companies, because one record must not make the others unreadable.
  for (const { name } of views) await warehouse.db.execute(sql.raw(`select * from ${name}`));
  const usage = await company.rows('usage', 'start_date, usage');
  expect(usage.map((row) => row.usage)).toEqual([null, null, null, '7']);
  const kept = await warehouse.db.execute<{ digits: number }>(sql`
    select max(length(raw ->> 'usage')) as digits from utility.usage_data where company_id = ${company.id}::uuid`);
  expect(kept.rows[0]?.digits).toBe(1_000);

  await check(company);
  const unusable = (await issues(company)).filter((one) => one.check_name.startsWith('unusable'));
  expect(unusable.map((one) => [one.check_name, one.entity_id, one.subject]).sort()).toEqual(
    [
      ['unusable_amount', ids[0], 'currentCharges'],
      ...[0, 1, 2].map((at) => ['unusable_amount', ids[at], 'usage MWh']),
      ['unusable_reading', meter, ''],
    ].sort(),
  );
});

test('checks report readings without an amount', async () => {
  const meter = meterId();
  const company = await companyWith(meter);
  await warehouse.db.execute(sql`select metersync.ensure_interval_month('2026-01-01')`);
  await warehouse.db.execute(sql`
    insert into utility.intervals (meter_id, start_at, granularity_seconds, usage_units, usage, synced_at)
    select ${meter}, '2026-01-05Z'::timestamptz + n * interval '1 hour', 3600, 'kWh', nullif(n, 0), now()
    from generate_series(0, 2) n`);
  await check(company);
  const { rows } = await warehouse.db.execute(sql`
    select sentence from ops.open_issues
    where company_id = ${company.id}::uuid and check_name = 'unusable_reading'`);
  expect(rows).toEqual([
    {
      sentence: 'Views leave out 1 reading without an amount or with too many digits for calculations.',
    },
  ]);
});

test('checks report readings with a value that no column can hold, with the text of the first value', async () => {
  const meter = meterId();
  const company = await companyWith(meter);
  const day = (at: number) => `2026-01-0${at}T00:00:00Z`;
  const columns = {
    startAt: [1, 2, 3].map(day),
    endAt: [2, 3, 4].map(day),
    granularitySeconds: [null, null, null],
    usage: ['1', 'N/A', '1,5'],
    usageUnits: ['kWh', 'kWh', 'kWh'],
    quality: [null, null, null],
    updated: [null, null, null],
    id: [null, null, null],
  };
  await writeReadings(warehouse, meter, began(1), columns);
  await check(company);
  const { rows } = await warehouse.db.execute(sql`
    select check_name, sentence from ops.open_issues
    where company_id = ${company.id}::uuid and check_name like 'un%able_reading'`);
  expect(rows).toEqual([
    {
      check_name: 'unreadable_reading',
      sentence: 'A value of 2 readings cannot be read, the first of 2026-01-02: its usage is "N/A".',
    },
  ]);
  expect(await countUnreadable(warehouse.db, mostCounted)).toBeGreaterThanOrEqual(2);
});

test('checks report several readings of one time with their values, until one of them or the meter is gone', async () => {
  const meter = meterId();
  const company = await companyWith(meter);
  const pairs = (first: string, last: string) => sql`
    insert into utility.intervals
      (meter_id, start_at, granularity_seconds, usage_units, ordinal, usage, quality, synced_at)
    select ${meter}, at, 900, 'kWh', ordinal, usage, 'ACTUAL', now()
    from generate_series(${first}::timestamptz, ${last}, '15 minutes') at,
      (values (0, -0.7), (1, 2.0)) as register (ordinal, usage)`;
  const found = async () => {
    await check(company);
    const { rows } = await warehouse.db.execute<{ sentence: string }>(sql`
      select severity, meter_id, sentence
      from ops.open_issues
      where company_id = ${company.id}::uuid and check_name = 'several_readings'`);
    return rows;
  };
  await warehouse.db.execute(sql`select metersync.ensure_interval_month('2026-01-01')`);
  await warehouse.db.execute(sql`
    insert into utility.intervals (meter_id, start_at, granularity_seconds, usage_units, usage, quality, synced_at)
    values (${meter}, '2026-01-05Z', 900, 'kWh', 1, 'ACTUAL', now()),
      (${meter}, '2026-01-06Z', 3600, 'kWh', 4, 'ACTUAL', now())`);
  expect(await found()).toEqual([]);
  await warehouse.db.execute(pairs('2026-01-06Z', '2026-01-06Z'));
  const sentence =
    'The meter has several readings of 1 time since 2026-01-06, for example 2.0 and -0.7 kWh. ' +
    'The views of analytics sum them.';
  expect(await found()).toEqual([{ severity: 'info', meter_id: meter, sentence }]);
  await warehouse.db.execute(pairs('2026-01-06 00:15Z', '2026-01-07Z'));
  expect(await found()).toMatchObject([{ sentence: sentence.replace('1 time', '97 times') }]);
  const deleted = (at: string | null) =>
    warehouse.db.execute(sql`update utility.meters set deleted_at = ${at} where id = ${meter}`);
  await deleted('2026-02-01Z');
  expect(await found()).toEqual([]);
  await deleted(null);
  expect(await found()).toHaveLength(1);
  await warehouse.db.execute(sql`delete from utility.intervals where meter_id = ${meter} and usage < 0`);
  await warehouse.db.execute(sql`update utility.intervals set ordinal = 0 where meter_id = ${meter}`);
  expect(await found()).toEqual([]);
});

test('a field that is new after a backfill of all companies is an issue for 30 days', async () => {
  const resource = `records ${randomUUID()}`;
  const catalogue = createFieldCatalogue({
    db: warehouse.db,
    onError: (error) => {
      throw error;
    },
  });
  const issues = async () =>
    (
      await warehouse.db.execute(sql`select entity_id as field, closed_reason,
        ops.issue_sentence(check_name, subject, evidence) as sentence
      from ops.data_issues where check_name = 'new_field' and entity_id like ${`${resource}%`} order by 1`)
    ).rows;
  await catalogue.note(resource, 'v2', [{ a: 1 }]);
  await refreshFieldIssues(warehouse.db, []);
  expect(await issues()).toEqual([]);

  await warehouse.db.execute(sql`insert into metersync.runs (run_id, state, finished_at)
    values (gen_random_uuid(), 'complete', clock_timestamp())`);
  await catalogue.note(resource, 'v2.2', [{ a: '1', b: 1 }]);
  await refreshFieldIssues(warehouse.db, ['new_field']);
  expect(await issues()).toEqual([]);
  expect(await refreshFieldIssues(warehouse.db, [])).toMatchObject({ opened: 1, closed: 0 });
  const day = new Date().toISOString().slice(0, 10);
  const issue = {
    field: `${resource}/b`,
    sentence: `The service has sent the field /b of ${resource} since ${day}.`,
  };
  expect(await issues()).toEqual([{ ...issue, closed_reason: null }]);
  expect(await refreshFieldIssues(warehouse.db, [])).toMatchObject({ opened: 0, closed: 0 });

  await warehouse.db.execute(sql`update metersync.field_catalogue set first_seen_at = first_seen_at - interval '30 days'
    where resource = ${resource}`);
  expect(await refreshFieldIssues(warehouse.db, [])).toMatchObject({ opened: 0, closed: 1 });
  expect(await issues()).toEqual([{ ...issue, closed_reason: 'evidence_gone' }]);
});

test('each check has found something in these tests', async () => {
  const { rows } = await warehouse.db.execute<{ check_name: string }>(sql`
    select check_name from ops.data_issue_checks where check_name not in (select check_name from ops.data_issues)`);
  expect(rows).toEqual([]);
});

test('each finding is described in a sentence with the names of its records', async () => {
  const { rows: sentences } = await warehouse.db.execute<{ check_name: string; sentence: string | null }>(sql`
    select check_name, ops.issue_sentence(check_name, subject, evidence) as sentence from ops.data_issues`);
  expect(new Set(sentences.map((row) => row.check_name)).size).toBe(checkNames.length);
  for (const { check_name, sentence } of sentences) {
    expect(sentence).toMatch(/^[A-Z0-9][^{}]{15,}\.$/);
    expect(sentence).not.toMatch(/ {2}| ,|\(\)|null/);
    expect(sentence).not.toContain(`${check_name}:`);
  }
  const figures = { days_late: 1, billed_until: '2026-01-02T03:04:05Z', usual_days: 21 };
  const late = await warehouse.db.execute(
    sql`select ops.issue_sentence('late_bill', '', ${JSON.stringify(figures)}::jsonb) as sentence`,
  );
  expect(late.rows).toEqual([
    {
      sentence: 'The next bill is 1 day late: the meter is billed until 2026-01-02, usually every 21 days.',
    },
  ]);
  const meter = meterId();
  const company = new BilledCompany(warehouse);
  await company.add({ [meter]: { account: 'a', identifiers: [{ name: 'METER', value: 'E-77' }] } });
  const accounts = [{ id: 'a', accountNumber: 'A-9', meters: [meter] }];
  const connection = { id: randomUUID(), status: 'CONNECTED', datasource: 'City Power', accounts };
  await writeRecords(warehouse, 'connections', [connection], { companyId: company.id });
  await company.bill([
    billOf(meter, 0, {}, {}),
    billOf(meter, 2, {}, {}),
    billOf(
      meter,
      3,
      {},
      { more: { ...billOf(meter, 3).more, utilityCompany: 'City Power', lineItems: [{ totalCharge: '1' }] } },
    ),
  ]);
  await check(company);
  const { rows } = await warehouse.db.execute(
    sql`select * from ops.open_issues where company_id = ${company.id}::uuid order by check_name`,
  );
  const named = { company: 'Acme', site: 'Main street', meter_id: meter, meter: 'E-77', account: 'A-9' };
  const found = (name: string) => rows.find((row) => row.check_name === name);
  expect(found('bill_gap')).toMatchObject({
    ...named,
    sentence: 'No bill covers 2025-02-01 to 2025-02-28 (28 days: about 1 bill, some 93 USD).',
    since: expect.anything(),
    acknowledged_at: null,
  });
  expect(found('amount_mismatch')).toMatchObject({ company: 'Acme', provider: 'City Power' });
});

test('the sentence of an issue names a single day only once', async () => {
  const day = { extent: '1 days', from: '2025-02-01', until: '2025-02-02' };
  const { rows } = await warehouse.db.execute(
    sql`select ops.issue_sentence('bill_gap', '', ${JSON.stringify(day)}::jsonb) as sentence`,
  );
  expect(rows).toEqual([{ sentence: 'No bill covers 2025-02-01 (1 day).' }]);
});

test('each sentence of an issue is in the singular if its figures are one', async () => {
  const { rows } = await warehouse.db.execute<{ check_name: string; sentence: string }>(sql`
    select check_name, ops.issue_sentence(check_name, '1', evidence) as sentence
    from ops.data_issue_checks
      cross join lateral (
        select jsonb_object_agg(key[1], '1') || jsonb_build_object('until', '2025-02-02') as evidence
        from regexp_matches(sentence, '[{]([a-z_]+)', 'g') key
      ) figures`);
  expect(rows.length).toBe(checkNames.length);
  for (const { check_name, sentence } of rows)
    expect(sentence, check_name).not.toMatch(
      /\b1 (?!(?:is|was|has)\b)\w+s\b|\b1 (\w+ )?(have|are|were|state)\b/,
    );
  expect(rows.find((row) => row.check_name === 'unreadable_reading')?.sentence).toBe(
    'A value of 1 reading cannot be read, the first of 1: its 1 is 1.',
  );
});
