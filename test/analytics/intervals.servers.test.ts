import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { refreshDataIssues } from '../../db/checks/check-data.ts';
import { readReport } from '../../db/read/report.ts';
import { BilledCompany } from '../support/bills.ts';
import { cases } from '../support/cases.ts';
import { forFile } from '../support/for-file.ts';
import { createWarehouse } from '../support/warehouse.ts';

const warehouse = await forFile(createWarehouse());

const seed = Number(process.env.SEED ?? 20_261_123);

interface Reading {
  /** Seconds since 1970. */
  readonly start: number;
  readonly seconds: number;
}

/** Returns a function that computes the local day of a second with Intl, which has its own zone rules. */
function localDay(zone: string): (at: number) => string {
  const format = new Intl.DateTimeFormat('en-CA', { timeZone: zone, dateStyle: 'short' });
  return (at) => format.format(at * 1000);
}

/** Five minutes, of which every start, length and clock change in this test is a multiple. */
const step = 300;

/** Counts the covered steps of each local day one by one, for each length of readings. */
function coveredSteps(shown: readonly Reading[], zone: string): Map<string, number> {
  const dayOf = localDay(zone);
  const covered = new Map<number, Set<number>>();
  for (const { start, seconds } of shown) {
    const steps = covered.get(seconds) ?? new Set();
    for (let at = start; at < start + seconds; at += step) steps.add(at);
    covered.set(seconds, steps);
  }
  const days = new Map<string, number>();
  for (const [seconds, steps] of covered) {
    for (const at of steps) {
      const key = `${dayOf(at)} ${seconds}`;
      days.set(key, (days.get(key) ?? 0) + 1);
    }
  }
  return days;
}

/** Counts the covered steps of a day one by one; each has its part of the shortest readings that cover it. */
function countedOn(day: string, zone: string, shown: readonly Reading[]): { steps: number; usage: number } {
  const dayOf = localDay(zone);
  const shortest = new Map<number, { seconds: number; readings: number }>();
  for (const { start, seconds } of shown) {
    for (let at = start; at < start + seconds; at += step) {
      const held = shortest.get(at);
      if (held === undefined || seconds < held.seconds) shortest.set(at, { seconds, readings: 1 });
      else if (seconds === held.seconds) held.readings++;
    }
  }
  const counted = { steps: 0, usage: 0 };
  for (const [at, { seconds, readings }] of shortest) {
    if (dayOf(at) !== day) continue;
    counted.steps++;
    counted.usage += (readings * 1.25 * step) / seconds;
  }
  return counted;
}

function stepsOfDay(day: string, zone: string): number {
  const dayOf = localDay(zone);
  const noon = Date.parse(`${day}T12:00:00Z`) / 1000;
  let steps = 0;
  for (let at = noon - 86_400 * 2; at < noon + 86_400 * 2; at += step) if (dayOf(at) === day) steps++;
  return steps;
}

/** Makes a company with one meter in a zone, which has readings of 1.25 kWh. */
async function metered(zone: string, shown: readonly Reading[]): Promise<BilledCompany> {
  const { company, meter } = await newMeter();
  await company.inZone(zone);
  const iso = (at: number) => new Date(at * 1000).toISOString();
  await company.read(
    ...shown.map(({ start, seconds }) => ({ meter, from: iso(start), seconds, usage: 1.25 })),
  );
  return company;
}

async function newMeter(): Promise<{ company: BilledCompany; meter: string }> {
  const company = new BilledCompany(warehouse);
  const meter = randomUUID();
  await company.add({ [meter]: {} });
  return { company, meter };
}

/** Zones with the days of their clock changes, mostly around midnight, which is skipped or repeated. */
const changes = [
  'America/New_York/2026-03-08',
  'America/New_York/2026-11-01',
  'UTC/2026-11-01',
  'Australia/Lord_Howe/2026-04-05',
  'Australia/Lord_Howe/2026-10-04',
  'Africa/Cairo/2026-04-24',
  'Africa/Cairo/2026-10-29',
  'Africa/Cairo/2026-10-30',
  'America/Santiago/2026-04-05',
  'America/Santiago/2026-09-06',
  'Asia/Beirut/2026-03-29',
  'Atlantic/Azores/2026-10-25',
  'America/Havana/2026-11-01',
  'America/Havana/2026-03-08',
];

/** Readings that follow one another; `from` is in steps after the day before the change. */
const anyRun = fc.record({
  from: fc.integer({ min: 0, max: 3 * 288 }),
  count: fc.integer({ min: 1, max: 120 }),
  seconds: fc.constantFrom(300, 900, 1800, 3600, 86_400),
});

/** Days with their quarter-hours. In 2010 the clocks of these zones changed a minute after midnight. */
test.each([
  ['America/St_Johns', '2010-11-05', [96, 100, 96]],
  ['America/St_Johns', '2010-03-13', [96, 92, 96]],
  ['America/Goose_Bay', '2010-11-06', [100, 96, 96]],
  ['America/St_Johns', '2026-10-31', [96, 100, 96]],
] as const)(
  'the expected readings of days in %s are right around a clock change: from %s, they have %j quarter-hours',
  async (zone, first, quarters) => {
    const dayOf = localDay(zone);
    let start = Date.parse(`${first}T15:30:00Z`) / 1000;
    while (dayOf(start - 900) === first) start -= 900;
    const total = quarters.reduce((sum, count) => sum + count, 0);
    for (const seconds of [900, 3600]) {
      const shown = Array.from({ length: (total * 900) / seconds }, (_, at) => ({
        start: start + at * seconds,
        seconds,
      }));
      const company = await metered(zone, shown);
      const days = await company.rows('interval_daily', 'local_date');
      const counts = quarters.map((count) => (count * 900) / seconds);
      expect(days.map((row) => [row.readings, Number(row.expected_readings), row.coverage])).toEqual(
        counts.map((count) => [count, count, '1.0000']),
      );
      expect(String(days[0]?.local_date)).toBe(first);
    }
  },
);

test(`coverage, gaps and overlaps are right for any readings around clock changes (seed ${seed})`, {
  timeout: 120_000,
}, async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(...changes),
      fc.array(anyRun, { minLength: 1, maxLength: 4 }),
      async (drawnChange, runs) => {
        const [, zone = '', change = ''] = /^(.*)\/(.*)$/.exec(drawnChange) ?? [];
        const origin = Date.parse(`${change}T00:00:00Z`) / 1000 - 86_400;
        const drawn = runs.flatMap(({ from, count, seconds }) =>
          Array.from({ length: seconds === 86_400 ? Math.min(count, 2) : count }, (_, at) => ({
            start: origin + from * step + at * seconds,
            seconds,
          })),
        );
        const shown = [...new Map(drawn.map((one) => [`${one.start}/${one.seconds}`, one])).values()];
        const company = await metered(zone, shown);

        // The readings of each length are also stored alone, for a meter of their own.
        const byResolution: Record<string, unknown>[] = [];
        for (const seconds of new Set(shown.map((one) => one.seconds))) {
          const alone = await metered(
            zone,
            shown.filter((one) => one.seconds === seconds),
          );
          byResolution.push(...(await alone.rows('interval_daily', 'local_date')));
        }
        const covered = byResolution.map((row) => [
          `${row.local_date} ${row.granularity_seconds}`,
          Number(row.covered_seconds) / step,
        ]);
        expect(new Map(covered as [string, number][])).toEqual(coveredSteps(shown, zone));

        for (const row of await company.rows('interval_daily', 'local_date')) {
          const day = String(row.local_date);
          expect([day, Number(row.day_seconds) / step]).toEqual([day, stepsOfDay(day, zone)]);
          const ofDay = byResolution.filter((one) => one.local_date === day);
          const full = ofDay.filter((one) => Number(one.covered_seconds) === Number(row.day_seconds));
          const finest = Math.min(...full.map((one) => Number(one.granularity_seconds)));
          if (full.length > 0) expect(row.granularity_seconds).toBe(finest);
          const counted = countedOn(day, zone, shown);
          expect([day, Number(row.covered_seconds) / step]).toEqual([day, counted.steps]);
          if (full.length === 0)
            expect([day, Number(row.usage)]).toEqual([day, expect.closeTo(counted.usage, 3)]);
        }
        const sum = byResolution.reduce((total, row) => total + Math.round(Number(row.usage) * 1e6), 0);
        expect(sum).toBe(shown.length * 1_250_000);

        const held = new Map<number, number>();
        for (const { start, seconds } of shown)
          for (let at = start; at < start + seconds; at += step) held.set(at, (held.get(at) ?? 0) + 1);
        const [first, last] = [Math.min(...held.keys()), Math.max(...held.keys())];
        const missing = (last - first) / step + 1 - held.size;
        const gaps = await company.rows('interval_gaps', 'gap_start');
        expect(gaps.reduce((total, row) => total + Number(row.seconds), 0)).toBe(missing * step);
        const doubly = [...held.values()].filter((times) => times > 1).length;
        const overlaps = await company.rows('interval_overlaps', 'overlap_start');
        expect(overlaps.reduce((total, row) => total + Number(row.seconds), 0)).toBe(doubly * step);
      },
    ),
    { seed, numRuns: cases(25, 80) },
  );
});

test('a day begins at the first moment of its local date in every zone, around each clock change from 2020 to 2027', async () => {
  const days = Intl.supportedValuesOf('timeZone').flatMap(daysOfChanges);
  const { rows } = await warehouse.db.execute<{ start: number; local_date: string; before: string }>(sql`
    select extract(epoch from s.start)::int as start, (s.start at time zone d.zone)::date::text as local_date,
      ((s.start - interval '1 second') at time zone d.zone)::date::text as before
    from jsonb_to_recordset(${JSON.stringify(days.map((day, at) => ({ ...day, at })))}::jsonb) as d (zone text, day date, at int)
      cross join lateral metersync.day_start(d.day, d.zone) as s (start)
    order by d.at`);
  expect(rows.map((row) => row.local_date)).toEqual(days.map(({ day }) => day));
  expect(rows.filter((row, at) => row.before >= (days[at]?.day ?? ''))).toEqual([]);
  const others = days.filter(({ start }, at) => start !== rows[at]?.start);
  // Postgres and Node may have rules of different years, so some days of changed zones may differ.
  expect(new Set(others.map(({ zone }) => zone)).size).toBeLessThan(10);
  for (const one of changes) {
    const [, zone = '', change = ''] = /^(.*)\/(.*)$/.exec(one) ?? [];
    expect(others).not.toContainEqual(expect.objectContaining({ zone, day: change }));
  }
});

/** Finds the days around each clock change of a zone, and when each day begins, with Intl. */
function daysOfChanges(zone: string): { zone: string; day: string; start: number }[] {
  const dayOf = localDay(zone);
  const offset = new Intl.DateTimeFormat('en-CA', { timeZone: zone, timeZoneName: 'longOffset' });
  const offsetAt = (at: number) => offset.format(at * 1000).slice('2020-01-01, '.length);
  const first = (from: number, until: number, is: (at: number) => boolean) => {
    let [low, high] = [from, until];
    while (high - low > 1) {
      const middle = Math.floor((low + high) / 2);
      if (is(middle)) high = middle;
      else low = middle;
    }
    return high;
  };
  const found: { zone: string; day: string; start: number }[] = [];
  const step = 20 * 86_400;
  const until = Date.UTC(2028, 0, 1) / 1000;
  for (let from = Date.UTC(2020, 0, 1) / 1000; from < until; from += step) {
    const before = offsetAt(from);
    if (offsetAt(from + step) === before) continue;
    const change = first(from, from + step, (at) => offsetAt(at) !== before);
    for (const near of [change - 86_400, change, change + 86_400]) {
      const day = dayOf(near);
      found.push({ zone, day, start: first(near - 2 * 86_400, near + 1, (at) => dayOf(at) >= day) });
    }
  }
  return found;
}

test('readings without an amount cover nothing, so their month counts by its bill', async () => {
  const { company, meter } = await newMeter();
  await company.inZone('UTC');
  const days = { meter, seconds: 86_400 };
  await company.read(
    { ...days, from: '2026-04-01', count: 15, usage: 1.25 },
    { ...days, from: '2026-04-01 12:00', usage: null },
    { ...days, from: '2026-04-16', count: 15, usage: null },
  );
  await company.bill([
    { billed: 1, usage: [{ meterId: meter, start: '2026-04-01', end: '2026-04-30', usage: '300' }] },
  ]);
  expect(await company.rows('interval_coverage', 'month')).toMatchObject([
    { usage: '18.75', readings: 31, coverage: '0.5000', days: 30, days_covered: 15 },
  ]);
  expect(await company.rows('interval_overlaps', 'overlap_start')).toEqual([]);
  await warehouse.db.execute(sql`
    update utility.intervals set usage = 1 where meter_id = ${meter} and start_at = '2026-04-30Z'`);
  expect(await company.rows('interval_gaps', 'gap_start')).toMatchObject([{ seconds: '1209600' }]);
});

/** A reading of 1 kW for each day of February 2026. */
const dailyInFebruary = (meter: string) => ({
  meter,
  from: '2026-02-01',
  count: 28,
  seconds: 86_400,
  usage: 24,
});

test('readings of exports and generation add nothing to the load', async () => {
  const company = new BilledCompany(warehouse);
  const [taken, given, made] = [randomUUID(), randomUUID(), randomUUID()];
  await company.add({
    [taken]: { netMeteringType: 'IMPORT' },
    [given]: { netMeteringType: 'EXPORT' },
    [made]: { netMeteringType: 'GENERATION' },
  });
  const january = { start: '2026-01-01', end: '2026-01-31' };
  await company.bill([
    { billed: 1, usage: [taken, given, made].map((meterId) => ({ meterId, ...january, usage: '310' })) },
  ]);
  await company.read(...[taken, given, made].map(dailyInFebruary));
  const { load } = await readReport(warehouse.db, company.id);
  // A reading of a day counts in one hour of the profile, on each weekday.
  expect(load.hours.map(({ kw }) => kw)).toEqual(Array(7).fill('1.000'));
});

test('readings have the net metering type of the newest usage record, or else of their meter', async () => {
  const company = new BilledCompany(warehouse);
  const [given, taken, turned, unbilled] = [randomUUID(), randomUUID(), randomUUID(), randomUUID()];
  const exported = { netMeteringType: 'EXPORT' };
  await company.add({ [given]: {}, [taken]: exported, [turned]: {}, [unbilled]: exported });
  const of = (meterId: string, netMeteringType: string) => ({
    meterId,
    start: '2025-01-01',
    end: '2025-01-31',
    usage: '310',
    more: { netMeteringType },
  });
  await company.bill([
    { billed: 1, usage: [of(turned, 'IMPORT')] },
    { billed: 2, usage: [of(given, 'EXPORT'), of(taken, 'IMPORT'), of(turned, 'EXPORT')] },
    { billed: 3, usage: [of(given, 'IMPORT')], more: { revisedDocumentId: randomUUID() } },
  ]);
  await company.read(...[given, taken, turned, unbilled].map(dailyInFebruary));
  const types = new Map(
    (await company.rows('load_profile', 'hour')).map((row) => [row.meter_id, row.net_metering_type]),
  );
  expect([given, taken, turned, unbilled].map((meter) => types.get(meter))).toEqual([
    'EXPORT',
    'IMPORT',
    'EXPORT',
    'EXPORT',
  ]);
  const { load } = await readReport(warehouse.db, company.id);
  // A reading of a day counts in one hour of the profile, on each weekday.
  expect(load.hours.map(({ kw }) => kw)).toEqual(Array(7).fill('1.000'));
});

test('the report counts a month without readings as not covered, and a meter with two units once', async () => {
  const company = new BilledCompany(warehouse);
  const [whole, gap] = [randomUUID(), randomUUID()];
  await company.add({ [whole]: {}, [gap]: {} });
  const days = { seconds: 86_400, usage: 24 };
  await company.read(
    { ...days, meter: whole, from: '2026-01-01', count: 90 },
    { ...days, meter: whole, from: '2026-01-01', count: 90, units: 'kW' },
    { ...days, meter: gap, from: '2026-01-01', count: 31 },
    { ...days, meter: gap, from: '2026-03-01', count: 31 },
  );
  const { coverage } = await readReport(warehouse.db, company.id);
  expect(coverage.map(({ month, readings }) => [month, Number(readings)])).toEqual([
    ['2026-01-01', 1],
    ['2026-02-01', 0.5],
    ['2026-03-01', 1],
  ]);
});

test.each([
  ['kW', 'GW', 24],
  ['kWh', 'GWh', 24],
  ['Wh', 'kW', 24],
])('the load of a meter is in the unit with most readings: %s, if one is in %s', async (most, one, hours) => {
  const { company, meter } = await newMeter();
  const from = '2026-02-02';
  await company.read(
    { meter, from, count: hours, usage: 3, units: most },
    { meter, from, usage: 3, units: one },
  );
  expect(await company.rows('load_profile', 'hour')).toHaveLength(hours);
});

test('a meter that sends its power in two units has one load', async () => {
  const { company, meter } = await newMeter();
  const from = '2026-02-02';
  await company.read({ meter, from, usage: 3, units: 'KW' }, { meter, from, usage: 0.003, units: 'MW' });
  expect(await company.rows('load_profile', 'hour')).toMatchObject([
    { weekday: 1, hour: 0, average_kw: '3.000000' },
  ]);
});

test('interval_daily sums overlapping readings of one length, and counts only one length', async () => {
  const start = Date.parse('2026-03-01T00:00:00Z') / 1000;
  const hours = Array.from({ length: 24 }, (_, at) => ({ start: start + at * 3600, seconds: 3600 }));
  const between = { start: start + 1800, seconds: 3600 };
  const company = await metered('UTC', [...hours, between, { start, seconds: 86_400 }]);
  expect(await company.rows('interval_daily', 'local_date')).toMatchObject([
    { usage: '31.25', readings: 25, coverage: '1.0000' },
  ]);
});

test('a day that a time zone skipped has no row, and its readings belong to the days around it', async () => {
  const company = await metered('Pacific/Apia', [
    { start: Date.parse('2011-12-29T22:00:00Z') / 1000, seconds: 86_400 },
  ]);
  const days = await company.rows('interval_daily', 'local_date');
  expect(days.map((row) => [row.local_date, row.covered_seconds, row.day_seconds])).toEqual([
    ['2011-12-29', 12 * 3600, 86_400],
    ['2011-12-31', 12 * 3600, 86_400],
  ]);
});

test('a query for one company reads only its meters and the given months, even if most meters have no readings', async () => {
  await warehouse.db.execute(sql`
    insert into utility.meters (id, company_id, raw) select 'planned ' || n, md5('planned ' || n / 10)::uuid, '{}' from generate_series(0, 999) n`);
  await new BilledCompany(warehouse).read(
    ...Array.from({ length: 10 }, (_, n) => ({
      meter: `planned ${n * 10}`,
      from: '2024-01-01',
      count: 5_760,
      seconds: 900,
    })),
  );
  await warehouse.db.execute(sql`analyze utility.intervals, utility.meters`);
  const plan = async (condition: string) => {
    const { rows } = await warehouse.db.execute<{ 'QUERY PLAN': string }>(
      sql.raw(`explain select * from analytics.interval_readings where ${condition}`),
    );
    return rows.map((row) => row['QUERY PLAN']).filter((line) => line.includes('intervals_2024'));
  };
  const company = "company_id = md5('planned 5')::uuid";
  expect((await plan(company)).map((line) => line.replace(/^.*->\s+|\s+i_\d+\s+\(.*$/g, ''))).toEqual([
    'Index Scan using intervals_2024_01_pkey on intervals_2024_01',
    'Index Scan using intervals_2024_02_pkey on intervals_2024_02',
  ]);
  const january = "start_at >= '2024-01-10 00:00Z' and start_at < '2024-01-11 00:00Z'";
  const ofJanuary = await plan(`${company} and ${january}`);
  expect(ofJanuary).toHaveLength(1);
  expect(ofJanuary[0]).toContain('intervals_2024_01');
});

/** Readings of 1 kWh an hour in lengths that follow one another, until the last of these times. */
async function steadyMeter(
  runs: readonly { readonly from: string; readonly minutes: number }[],
  until: string,
  zone = 'UTC',
): Promise<{ company: BilledCompany; meter: string }> {
  const { company, meter } = await newMeter();
  await company.inZone(zone);
  await company.read(
    ...runs.map(({ from, minutes }, at) => {
      const seconds = minutes * 60;
      const count = (Date.parse(runs[at + 1]?.from ?? until) - Date.parse(from)) / seconds / 1000;
      return { meter, from, count, seconds, usage: minutes / 60 };
    }),
  );
  await company.bill([
    { billed: 1, usage: [{ meterId: meter, start: '2026-03-01', end: '2026-03-03', usage: '72' }] },
  ]);
  return { company, meter };
}

/** The zone, minutes of a reading before and after the change, when it comes, and how many readings the day has. */
test.each([
  ['UTC', 30, 15, '2026-03-02T12:00Z', 72],
  ['UTC', 15, 60, '2026-03-02T06:00Z', 42],
  ['UTC', 15, 60, '2026-03-02T23:00Z', 93],
  ['UTC', 5, 30, '2026-03-02T12:00Z', 168],
  ['UTC', 60, 15, '2026-03-02T11:00Z', 63],
  // Midnight in New York, inside a day in UTC and at the beginning of a day in New York.
  ['UTC', 30, 15, '2026-03-02T05:00Z', 86],
  ['America/New_York', 30, 15, '2026-03-02T05:00Z', 96],
  ['America/New_York', 60, 15, '2026-03-02T17:00Z', 60],
] as const)(
  'in %s a day on which readings change from %i to %i minutes, at %s, is whole, and has %i readings',
  async (zone, before, after, at, readings) => {
    const [first, until] =
      zone === 'UTC' ? ['03-01T00:00Z', '03-04T00:00Z'] : ['03-01T05:00Z', '03-04T05:00Z'];
    const { company } = await steadyMeter(
      [
        { from: `2026-${first}`, minutes: before },
        { from: at, minutes: after },
      ],
      `2026-${until}`,
      zone,
    );
    const days = await company.rows('interval_daily', 'local_date');
    expect(days.map((day) => [day.local_date, Number(day.usage), Number(day.max_kw), day.coverage])).toEqual(
      ['2026-03-01', '2026-03-02', '2026-03-03'].map((day) => [day, 24, 1, '1.0000']),
    );
    expect(days[1]).toMatchObject({ readings, expected_readings: `${readings}.00`, covered_seconds: 86_400 });
    const [month] = await company.rows('interval_coverage', 'month');
    expect([Number(month?.usage), month?.days_covered]).toEqual([72, 3]);
    const [compared] = await company.rows('bill_interval_comparison', 'period');
    expect([
      Number(compared?.interval_usage),
      Math.abs(Number(compared?.difference)) < 1e-12,
      compared?.interval_coverage,
    ]).toEqual([72, true, '1.0000']);
    expect(Number(compared?.relative_difference)).toBe(0);
    for (const view of ['interval_gaps', 'interval_overlaps'])
      expect(await company.rows(view, 'meter_id')).toEqual([]);
    const hours = await company.rows('load_profile', 'weekday, hour');
    expect(hours.map((hour) => [Number(hour.average_kw), hour.days])).toEqual(Array(72).fill([1, 1]));
    await refreshDataIssues(warehouse.db, [company.id], { kinds: ['intervals'] });
    const { rows: issues } = await warehouse.db.execute(sql`
      select check_name, sentence from ops.open_issues
      where company_id = ${company.id}::uuid and check_name <> 'no_time_zone'`);
    expect(issues).toEqual([]);
  },
);

test('where readings of two lengths overlap, the shorter readings count, and the rest of the longer reading', async () => {
  const { company, meter } = await steadyMeter(
    [
      { from: '2026-03-01T00:00Z', minutes: 60 },
      { from: '2026-03-02T12:00Z', minutes: 15 },
    ],
    '2026-03-04T00:00Z',
  );
  // A reading of 5 kWh that the readings of 15 minutes cover from 12:00 on.
  await company.read({ meter, from: '2026-03-02T11:45Z', seconds: 1800, usage: 5 });
  const [, day] = await company.rows('interval_daily', 'local_date');
  // 11 hours, 0.75 of the hour from 11:00, half of the 5 kWh, and 12 hours.
  expect(day).toMatchObject({
    coverage: '1.0000',
    granularity_seconds: 900,
    usage: expect.stringMatching(/^26\.250*$/),
  });
});

test('the same energy in readings of 15 minutes, an hour and a day counts once, whatever is missing', async () => {
  const { company, meter } = await steadyMeter(
    [{ from: '2026-03-01T00:00Z', minutes: 15 }],
    '2026-03-04T00:00Z',
  );
  const from = '2026-03-01';
  await company.read({ meter, from, count: 72 }, { meter, from, count: 3, seconds: 86_400, usage: 24 });
  const usage = async () =>
    (await company.rows('interval_daily', 'local_date')).map((day) => [Number(day.usage), day.coverage]);
  expect(await usage()).toEqual(Array(3).fill([24, '1.0000']));
  // Without the day, and with a gap in the hours and another in the quarter-hours.
  await warehouse.db.execute(sql`
    delete from utility.intervals
    where meter_id = ${meter}
      and (granularity_seconds, start_at) in
        ((86400, '2026-03-02Z'), (3600, '2026-03-02T03:00Z'), (900, '2026-03-02T09:15Z'))`);
  expect(await usage()).toEqual(Array(3).fill([24, '1.0000']));
  const hours = await company.rows('load_profile', 'weekday, hour');
  expect(hours.map((hour) => Number(hour.average_kw))).toEqual(Array(72).fill(1));
});

test('peak_loads has the peak of each meter, and of the combined load of a site and a company', async () => {
  const company = new BilledCompany(warehouse);
  const [quarters = '', hours = '', other = '', given = '', gas = ''] = ['q', 'h', 'o', 'g', 'x'].map(
    (name) => `${name}/${randomUUID()}`,
  );
  const otherSite = randomUUID();
  await company.add({
    [quarters]: {},
    [hours]: {},
    [other]: { site: otherSite },
    [given]: { netMeteringType: 'EXPORT' },
    [gas]: { datasourceType: 'GAS' },
  });
  const nine = '2026-03-02T09:00Z';
  const quarter = { meter: quarters, seconds: 900 };
  const half = { meter: other, seconds: 1800 };
  await company.read(
    // 10 kW, and 40 kW in the quarter-hour from 09:15.
    { ...quarter, from: '2026-03-02T09:15Z', usage: 10 },
    { ...quarter, from: nine, count: 8, usage: 2.5 },
    // The same energy in hours, which does not count again.
    { meter: quarters, from: nine, usage: 17.5 },
    { meter: quarters, from: '2026-03-02T10:00Z', usage: 10 },
    // 5 kW, and 50 kW from 10:00, in another spelling and unit.
    { meter: hours, from: nine, units: 'WH', usage: 5000 },
    { meter: hours, from: '2026-03-02T10:00Z', units: ' wh', usage: 50_000 },
    // Two registers, 20 - 8 kW.
    { ...half, from: nine, usage: 10 },
    { ...half, from: nine, usage: -4, ordinal: 1 },
    { ...half, from: '2026-04-01' },
    { meter: given, from: nine, usage: 900 },
    { meter: gas, from: nine, units: 'therms', usage: 9 },
  );
  const peaks = await company.rows('peak_loads', 'commodity, level, month, meter_id, site_id');
  const electric = peaks.filter((peak) => peak.commodity === 'ELECTRICITY');
  const said = electric
    .filter((peak) => peak.level !== 'site')
    .map((peak) => [
      peak.level,
      peak.meter_id,
      peak.month,
      Number(peak.peak_kw),
      peak.peak_at,
      peak.meters,
      peak.meters_of_month,
    ]);
  const at = (time: string) => `2026-03-02 ${time}:00+00`;
  expect(said).toEqual([
    // From 10:00 to 10:30 the other site has no readings any more: 10 + 50. At 09:15: 40 + 5 + 12.
    ['company', null, '2026-03-01', 60, at('10:00'), 2, 3],
    ['company', null, '2026-04-01', 2, '2026-04-01 00:00:00+00', 1, 1],
    ['meter', hours, '2026-03-01', 50, at('10:00'), 1, 1],
    ['meter', other, '2026-03-01', 12, at('09:00'), 1, 1],
    ['meter', quarters, '2026-03-01', 40, at('09:15'), 1, 1],
    ['meter', other, '2026-04-01', 2, '2026-04-01 00:00:00+00', 1, 1],
  ]);
  const sites = electric.filter((peak) => peak.level === 'site');
  expect(
    new Set(sites.map((peak) => `${peak.month} ${Number(peak.peak_kw)} ${peak.site_id === otherSite}`)),
  ).toEqual(new Set(['2026-03-01 60 false', '2026-03-01 12 true', '2026-04-01 2 true']));
  expect(peaks.filter((peak) => peak.commodity === 'GAS').map((peak) => peak.level)).toEqual([
    'company',
    'meter',
    'site',
  ]);
});
