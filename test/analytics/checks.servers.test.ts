import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import { expect, test } from 'vitest';
import { checkNames } from '../../contract/check-names.ts';
import { refreshFieldIssues } from '../../db/checks/check-data.ts';
import { createFieldCatalogue } from '../../db/fields/field-catalogue.ts';
import { mostCounted } from '../../db/read/bounds.ts';
import { countUnreadable } from '../../db/records/unreadable-values.ts';
import { keepMonths } from '../../db/watch/months.ts';
import { BilledCompany, type BillSaid, type UsageSaid } from '../support/bills.ts';
import {
  billOf,
  check as checkAll,
  companyWith as companyIn,
  type Issue,
  issues as issuesIn,
  january,
  meterId,
  months,
  setDeleted,
  year,
} from '../support/checked-bills.ts';
import { forFile } from '../support/for-file.ts';
import { rowOf, writeRecords } from '../support/pages.ts';
import { began, writeReadings } from '../support/readings.ts';
import { createWarehouse } from '../support/warehouse.ts';

const warehouse = await forFile(createWarehouse());
const companyWith = (...meters: string[]) => companyIn(warehouse, ...meters);

/** Checks a company. Returns its issues, of checks whose names are like this. */
async function found(company: BilledCompany, like = ''): Promise<Issue[]> {
  await checkAll(warehouse, company);
  return await issuesIn(warehouse, company, like);
}

/** Checks a company. Returns the sentences of its open issues, of checks whose names are like this. */
async function sentences(company: BilledCompany, like: string): Promise<string[]> {
  await checkAll(warehouse, company);
  const { rows } = await warehouse.db.execute<{ sentence: string }>(sql`
    select sentence from ops.open_issues where company_id = ${company.id}::uuid and check_name ~ ${like}`);
  return rows.map(({ sentence }) => sentence);
}

test('checks find no issues in correct data', async () => {
  const meter = meterId();
  const company = await companyWith(meter);
  await company.bill(year(meter));
  expect(await found(company)).toEqual([]);
});

/** The bills of a year with another last bill, and with one more bill. */
const withLast =
  (usage: Partial<UsageSaid>, more: Partial<BillSaid> = {}) =>
  (meter: string): BillSaid[] => [...year(meter, 12), billOf(meter, 12, usage, more)];
const withMore =
  (at: number, usage: Partial<UsageSaid>, more: Partial<BillSaid> = {}) =>
  (meter: string): BillSaid[] => [...year(meter), billOf(meter, at, usage, more)];

/** One fault in a bill of January or before: the kind of record of the issue, and its evidence. */
const faults: Readonly<
  Record<string, readonly [(meter: string) => BillSaid[], 'document' | 'usage' | 'meter', object]>
> = {
  bill_gap: [(m) => year(m, 5), 'meter', { from: '2025-06-01', until: '2025-07-01', days: 30 }],
  bill_overlap: [withLast({ start: '2025-12-30' }), 'meter', { days: 2 }],
  duplicate_bill: [withMore(12, {}, { billed: 13 }), 'document', { by: 'meters, days, usage and cost' }],
  unusual_period: [
    (m) => [...year(m, 10, 11, 12), billOf(m, 10, { end: '2026-01-31', usage: '9300' })],
    'document',
    { days: 92, usual_days: 31 },
  ],
  future_period: [withMore(13, { start: '2026-02-01', end: '2026-02-28' }), 'document', {}],
  amount_mismatch: [
    withLast(
      {},
      { more: { lineItems: [{ totalCharge: '100.00' }, { totalCharge: '9', billingPeriod: 'PREVIOUS' }] } },
    ),
    'document',
    { current_charges: 112.0, lines: 100.0 },
  ],
  usage_mismatch: [
    withLast({}, { more: { usageData: [{ usage: '5', usageUnits: 'kWh' }] } }),
    'document',
    { on_document: 5 },
  ],
  usage_spike: [withLast({ usage: '30000' }), 'document', { bills_before: 12 }],
  hidden_estimate: [
    (m) => [
      ...year(m, 9, 10, 11),
      ...[9, 10, 11].map((at) => billOf(m, at, { usage: at === 10 ? '3000' : '3100' })),
    ],
    'meter',
    { per_day: 100 },
  ],
  zero_usage_with_cost: [withLast({ usage: '0' }), 'document', { currency: 'USD' }],
  negative_usage: [withLast({ usage: '-5' }), 'usage', { usage: -5 }],
  unit_changed: [withLast({ usage: '3.1', units: 'MWh' }), 'usage', { units: 'MWh', before: 'kWh' }],
  currency_changed: [withLast({}, { currency: 'CAD' }), 'document', { currency: 'CAD', before: 'USD' }],
  bad_dates: [withLast({ end: '2026-01-01' }), 'usage', { quality: 'end_missing' }],
  late_bill: [(m) => year(m, 10, 11, 12), 'meter', { billed_until: '2025-11-01', usual_days: 31 }],
  orphan: [withLast({ meterId: 'nowhere' }), 'usage', { meter: 'nowhere' }],
  unknown_unit: [
    withMore(13, { units: 'furlongs', ...january }, { billed: 13 }),
    'meter',
    { units: 'furlongs' },
  ],
};

test('checks find each fault with its evidence, close the issue when the evidence is gone, and open a new one if it returns', async () => {
  const made: Record<string, { company: BilledCompany; meter: string; last: string | undefined }> = {};
  for (const [name, [wrong]] of Object.entries(faults)) {
    const meter = meterId();
    const company = await companyWith(meter);
    const last = (await company.bill(wrong(meter))).at(-1);
    made[name] = { company, meter, last };
  }
  const companies = Object.values(made).map(({ company }) => company);
  await checkAll(warehouse, ...companies);
  for (const [name, [, entity_type, evidence]] of Object.entries(faults)) {
    const { company, meter, last } = made[name] as (typeof made)[string];
    const id = { document: last, meter, usage: expect.any(String) }[entity_type];
    expect(await issuesIn(warehouse, company, `^${name}$`), name).toMatchObject([
      { entity_type, entity_id: id, open: true, evidence },
    ]);
  }
  const again = await checkAll(warehouse, ...companies);
  expect(again).toMatchObject({ opened: 0, closed: 0 });

  const setAll = async (deleted: boolean) => {
    for (const company of companies)
      for (const table of ['documents', 'usage_data'] as const)
        await setDeleted(warehouse, company, table, deleted);
    return await checkAll(warehouse, ...companies);
  };
  expect(await setAll(true)).toMatchObject({ opened: 0, closed: again.stillOpen, stillOpen: 0 });
  expect(await setAll(false)).toMatchObject({ opened: again.stillOpen });
  for (const [name, { company }] of Object.entries(made))
    expect((await issuesIn(warehouse, company, `^${name}$`)).map(({ open }) => open)).toEqual([false, true]);
});

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
const credit = { cost: '-100', usage: { usage: '-1000' } };

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
    Array(2).fill({ ...byInvoice, severity: 'info' }),
  ],
  ['correctly, after a credit for it', [credit, { cost: '90', usage: { usage: '900' } }], []],
  ['as it was, after a credit for it', [{ ...credit, cost: '-100.00' }, {}], []],
  ['twice, after one credit', [credit, {}, {}], [byCharges]],
  ['with a credit for a part', [{ cost: '-20', usage: { usage: '-200' } }], []],
])('a bill that is sent %s is compared with the earlier bills', async (_, more, expected) => {
  const meter = meterId();
  const company = await companyWith(meter);
  const of = (
    { account = 'A-1', provider = 'City Power', invoice = 'I-1', cost = '100', usage }: SentTwice,
    billed: number,
  ) => {
    const said = { accountNumber: account, utilityCompany: provider, invoiceId: invoice };
    return billOf(meter, 12, { usage: '1000', ...usage }, { billed, cost, more: said });
  };
  const [first, ...others] = await company.bill([{}, ...more].map(of));
  const duplicates = await found(company, 'duplicate_bill');
  expect(duplicates.map(({ evidence: { same_as: _same, ...evidence } }) => evidence)).toEqual(expected);
  for (const { entity_id: id, evidence, severity } of duplicates) {
    expect(others).toContain(id);
    expect([first, ...others]).toContain(evidence.same_as);
    expect(severity).toBe(evidence.severity ?? 'error');
  }
});

interface Ended {
  readonly account?: object;
  readonly meter?: object;
  readonly site?: object;
  /** When its connection was deleted. */
  readonly deleted?: string;
  /** Months of another meter of the account. */
  readonly other?: readonly number[];
  /** A bill for one day that follows. */
  readonly last?: string;
}
const late = ['late_bill', ''];
const june = ['bill_gap', '2025-06-01'];
const closed = (lastServiceDate: string): Ended => ({ account: { lastServiceDate } });

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
  ['if its account was closed with its last bill', closed('2025-10-31'), [june]],
  ['if its account was closed a day later', closed('2025-11-02'), [june]],
  ['if its account was closed a month later', closed('2025-11-30'), [june, late]],
  ['if its account was closed before the gap', closed('2025-05-31'), []],
  ['if a correction follows its final bill', { ...closed('2025-10-31'), last: '2025-12-20' }, [june]],
  ['if its site was archived', { site: { dataCollectionStopDate: '2025-10-31' } }, [june]],
  ['if its connection was deleted', { deleted: '2025-11-01' }, [june]],
  ['if another meter of its account follows', { other: [10, 11, 12] }, [june]],
  ['if another meter shares its last bill', { other: [9, 10, 11, 12] }, [june]],
  ['if a correction follows the exchange', { other: [10, 11, 12], last: '2025-12-20' }, [june]],
  ['if another meter of its account was there before', { other: [0, 1, 2, 10, 11, 12] }, [june, late]],
  ['if another meter begins with the gap', { other: [5, 6, 7, 8, 9, 10, 11, 12] }, [june, late]],
])('bills of a meter are missing %s', async (_, ended, expected) => {
  const { account, meter = {}, site = {}, deleted = null, other = [], last } = ended;
  const [id, replacement] = [meterId(), meterId()];
  const company = new BilledCompany(warehouse);
  await company.add({ [id]: meter, [replacement]: {} });
  const accounts = [{ id: randomUUID(), accountNumber: '1', meters: [id, replacement], ...account }];
  const connection = { id: randomUUID(), status: 'CONNECTED', accounts };
  await writeRecords(warehouse, 'connections', [connection], { companyId: company.id });
  await warehouse.db.execute(sql`
    update utility.connections set deleted_at = ${deleted}::timestamptz where id = ${connection.id}::uuid`);
  await warehouse.db.execute(sql`
    update utility.sites set raw = raw || ${JSON.stringify(site)}::jsonb where id = ${company.siteId}::uuid`);
  await company.bill([
    ...[0, 1, 2, 3, 4, 6, 7, 8, 9].map((at) => billOf(id, at)),
    ...other.map((at) => billOf(replacement, at)),
    ...(last === undefined ? [] : [billOf(id, 13, { start: last, end: last })]),
  ]);
  const own = (await found(company, 'gap|late')).filter((issue) => issue.entity_id === id);
  expect(own.map((issue) => [issue.check_name, issue.subject]).sort()).toEqual(expected);
});

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
  await checkAll(warehouse, company);
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
  const connections = [
    ['MFA_TOKEN_EXPIRED', '2026-01-15'],
    ['MFA_TOKEN_EXPIRED', '2026-02-09'],
    ['CONNECTED', '2026-01-01'],
    ['ON_HOLIDAY', '2026-02-09'],
  ].map(([status, since]) => ({
    id: randomUUID(),
    status,
    updated: '2026-02-01T00:00:00',
    statusFirstSeenTime: `${since}T00:00:00`,
  }));
  await writeRecords(warehouse, 'connections', connections, { companyId: company.id });
  const told = (await found(company)).map((one) => [one.check_name, one.entity_id, one.subject]);
  expect(told.sort()).toEqual([
    ['unhealthy_connection', connections[0]?.id, 'MFA_TOKEN_EXPIRED'],
    ['unknown_status', connections[3]?.id, 'ON_HOLIDAY'],
  ]);
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
  const of = { companyId: company.id };
  await writeRecords(warehouse, 'usageData', [loose(1, spike), loose(2, {}), loose(3, { usage: '1' })], of);
  for (const listing of ['documents', 'connections'] as const)
    await writeRecords(warehouse, listing, [{ id: randomUUID(), updated: '2026-02-01T00:00:00' }], of);
  const names = (await found(company)).map((issue) => issue.check_name);
  expect(names).toEqual(['bad_dates', 'bad_dates', 'unknown_unit']);
});

test('checks name a value that no column can hold, with its record and text, until it is corrected', async () => {
  const company = await companyWith();
  const ids = Array.from({ length: 5 }, () => randomUUID());
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
  const unreadable = await found(company, 'unreadable_value');
  expect(
    unreadable.map((one) => [one.entity_type, one.entity_id, one.subject, one.evidence.text]).sort(),
  ).toEqual([
    ['company', company.id, 'name', 'x'.repeat(200)],
    ['company', company.id, 'sites', 'nowhere'],
    ['connection', connection, 'created', of.created],
    ['document', document, 'created', of.created],
    ['meter', meter, 'site', 'main street'],
    ['usage', usage, 'usage', 'N/A'],
  ]);
  expect(await sentences(company, 'unreadable_value')).toContain(
    `The created of the document cannot be read: "${of.created}".`,
  );
  await writeRecords(warehouse, 'usageData', [{ id: usage, usage: '7' }], later);
  const corrected = (await found(company, 'unreadable_value')).filter((one) => !one.open);
  expect(corrected).toMatchObject([{ entity_id: usage }]);
});

test('checks name a text with characters that Postgres cannot hold, until it is read without them', async () => {
  const company = await companyWith();
  const [site, document, usage] = [randomUUID(), randomUUID(), randomUUID()];
  const read = { companyId: company.id };
  const later = { ...read, readAt: '2100-01-01T00:00:00Z' };
  const open = async () =>
    (await found(company, 'unreadable_value'))
      .filter((one) => one.open)
      .map((one) => [one.entity_type, one.entity_id, one.subject, one.evidence.text])
      .sort();
  const companies = [{ id: company.id, name: 'Acme', sites: [{ id: site, name: 'a\0b' }] }];
  await writeRecords(warehouse, 'companies', companies, later);
  await writeRecords(warehouse, 'sites', companies, later);
  const long = `\udc00${'x'.repeat(1_000)}`;
  const usageData = [{ id: randomUUID() }, { id: usage, note: { of: long } }];
  await writeRecords(warehouse, 'documents', [{ id: document, usageData }], read, true);
  const cut = String.raw`\udc00${'x'.repeat(194)}`;
  expect(await open()).toEqual([
    ['company', company.id, 'sites[0].name', String.raw`a\u0000b`],
    ['document', document, 'usageData[1].note.of', cut],
    ['site', site, 'name', String.raw`a\u0000b`],
    ['usage', usage, 'note.of', cut],
  ]);
  expect(await rowOf(warehouse, 'usageData', usage)).toMatchObject({
    raw: { note: { of: `\ufffd${'x'.repeat(1_000)}` } },
    unreadable: { 'note.of': String.raw`\udc00${'x'.repeat(1_000)}` },
  });
  const clean = [{ id: document, usageData: [{ id: usage, note: { of: 'x' } }] }];
  await writeRecords(warehouse, 'documents', clean, later, true);
  expect((await open()).map(([type]) => type)).toEqual(['company', 'site']);
});

test('checks name an undocumented commodity', async () => {
  const company = await companyWith();
  const odd = meterId();
  await company.add({ [odd]: { datasourceType: 'STARLIGHT' }, [meterId()]: { datasourceType: 'GAS' } });
  expect(await found(company)).toMatchObject([
    { check_name: 'unknown_commodity', entity_type: 'meter', entity_id: odd, subject: 'STARLIGHT' },
  ]);
});

test('checks find gaps in readings, days with the wrong number of hours, and differences from bills', async () => {
  const meter = meterId();
  const company = await companyWith(meter);
  await company.inZone('Europe/Berlin');
  // March 2026 has 743 hours in Berlin. Here the day of 23 hours has 24 readings, and two days have none.
  // Checks leave out the first and last day of the meter, here 10 hours of April 2. Otherwise the coverage of
  // April would be an issue.
  await company.read(
    { meter, from: '2026-02-28 23:00', count: 9 * 24 },
    { meter, from: '2026-03-11 23:00', count: 21 * 24 + 9 },
    { meter, from: '2026-03-29 00:30', quality: 'SUNNY' },
    // The last bill has three rows that are summed, one of them as an exclusion, and a demand. Readings in kW
    // are not summed.
    { meter, from: '2026-03-25 23:00', count: 3 * 24, units: 'kW' },
  );
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
  expect(await found(company, 'interval|clock|quality')).toMatchObject([
    {
      check_name: 'clock_change',
      subject: '2026-03-29 kWh',
      evidence: { readings: 24, expected: 23, time_zone: 'Europe/Berlin' },
    },
    { check_name: 'interval_bill_mismatch', evidence: { billed: 100, readings: 120 } },
    { check_name: 'interval_coverage', subject: '2026-03 kWh', evidence: { coverage: 0.9332 } },
    { check_name: 'unknown_quality', entity_id: meter, subject: 'SUNNY', evidence: { readings: 1 } },
  ]);
  // The check and the view say the same.
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
  await company.read(
    { meter, from: '2026-01-01 00:00', seconds: 900, units: 'MWh', usage: digits, quality: null },
    { meter, from: '2026-01-01 00:15', seconds: 900, units: 'MWh', usage: 2 },
  );
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
  const unusable = await found(company, '^unusable');
  expect(unusable.map((one) => [one.check_name, one.entity_id, one.subject]).sort()).toEqual(
    [
      ['unusable_amount', ids[0], 'currentCharges'],
      ...[0, 1, 2].map((at) => ['unusable_amount', ids[at], 'usage MWh']),
      ['unusable_reading', meter, ''],
    ].sort(),
  );
});

test('checks report readings without an amount, and readings with a value that no column can hold', async () => {
  const [empty, odd] = [meterId(), meterId()];
  const company = await companyWith(empty, odd);
  await company.read(
    { meter: empty, from: '2026-01-05', usage: null },
    { meter: empty, from: '2026-01-05 01:00', count: 2 },
  );
  const day = (at: number) => `2026-01-0${at}T00:00:00Z`;
  const none = [null, null, null];
  await writeReadings(warehouse, odd, began(1), {
    startAt: [1, 2, 3].map(day),
    endAt: [2, 3, 4].map(day),
    granularitySeconds: none,
    usage: ['1', 'N/A', '1,5'],
    usageUnits: ['kWh', 'kWh', 'kWh'],
    quality: none,
    updated: none,
    id: none,
  });
  expect((await sentences(company, '^un.*able_reading$')).sort()).toEqual([
    'A value of 2 readings cannot be read, the first of 2026-01-02: its usage is "N/A".',
    'Views leave out 1 reading without an amount or with too many digits for calculations.',
  ]);
  expect(await countUnreadable(warehouse.db, mostCounted)).toBeGreaterThanOrEqual(2);
});

test('checks report several readings of one time with their values, until one of them or the meter is gone', async () => {
  const meter = meterId();
  const company = await companyWith(meter);
  const quarter = { meter, seconds: 900 };
  const pairs = (from: string, count: number) =>
    company.read(
      { ...quarter, from, count, ordinal: 0, usage: '-0.7' },
      { ...quarter, from, count, ordinal: 1, usage: '2.0' },
    );
  const several = () => sentences(company, 'several_readings');
  await company.read({ ...quarter, from: '2026-01-05' }, { meter, from: '2026-01-06', usage: 4 });
  expect(await several()).toEqual([]);
  await pairs('2026-01-06', 1);
  const sentence =
    'The meter has several readings of 1 time since 2026-01-06, for example 2.0 and -0.7 kWh. ' +
    'The views of analytics sum them.';
  expect(await several()).toEqual([sentence]);
  expect(await found(company, 'several_readings')).toMatchObject([{ severity: 'info', entity_id: meter }]);
  await pairs('2026-01-06 00:15', 96);
  expect(await several()).toEqual([sentence.replace('1 time', '97 times')]);
  const deleted = (at: string | null) =>
    warehouse.db.execute(sql`update utility.meters set deleted_at = ${at} where id = ${meter}`);
  await deleted('2026-02-01Z');
  expect(await several()).toEqual([]);
  await deleted(null);
  expect(await several()).toHaveLength(1);
  await warehouse.db.execute(sql`delete from utility.intervals where meter_id = ${meter} and usage < 0`);
  await warehouse.db.execute(sql`update utility.intervals set ordinal = 0 where meter_id = ${meter}`);
  expect(await several()).toEqual([]);
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
  const { rows: said } = await warehouse.db.execute<{ check_name: string; sentence: string | null }>(sql`
    select check_name, ops.issue_sentence(check_name, subject, evidence) as sentence from ops.data_issues`);
  expect(new Set(said.map((row) => row.check_name)).size).toBe(checkNames.length);
  for (const { check_name, sentence } of said) {
    expect(sentence).toMatch(/^[A-Z0-9][^{}]{15,}\.$/);
    expect(sentence).not.toMatch(/ {2}| ,|\(\)|null/);
    expect(sentence).not.toContain(`${check_name}:`);
  }
  const meter = meterId();
  const company = new BilledCompany(warehouse);
  await company.add({ [meter]: { account: 'a', identifiers: [{ name: 'METER', value: 'E-77' }] } });
  const accounts = [{ id: 'a', accountNumber: 'A-9', meters: [meter] }];
  const connection = { id: randomUUID(), status: 'CONNECTED', datasource: 'City Power', accounts };
  await writeRecords(warehouse, 'connections', [connection], { companyId: company.id });
  await company.bill([
    billOf(meter, 0),
    billOf(meter, 2),
    billOf(meter, 3, {}, { more: { lineItems: [{ totalCharge: '1' }] } }),
  ]);
  await checkAll(warehouse, company);
  const { rows } = await warehouse.db.execute(
    sql`select * from ops.open_issues where company_id = ${company.id}::uuid order by check_name`,
  );
  const named = { company: 'Acme', site: 'Main street', meter_id: meter, meter: 'E-77', account: 'A-9' };
  const one = (name: string) => rows.find((row) => row.check_name === name);
  expect(one('bill_gap')).toMatchObject({
    ...named,
    sentence: 'No bill covers 2025-02-01 to 2025-02-28 (28 days: about 1 bill, some 93 USD).',
    since: expect.anything(),
    acknowledged_at: null,
  });
  expect(one('amount_mismatch')).toMatchObject({ company: 'Acme', provider: 'City Power' });
});
