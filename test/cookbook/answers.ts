import {
  effective,
  newestOfDay,
  type Period,
  periods,
  quotient,
  type SandboxData,
  type SandboxDocument,
  type SandboxInterval,
  scaledInteger,
  successorOf,
  toDate,
  toDay,
} from './sandbox-data.ts';

/** The sandbox at the first read, and now. */
export interface Sandbox {
  readonly before: SandboxData;
  readonly now: SandboxData;
}

type Row = readonly string[];
type Answer = (sandbox: Sandbox) => Row[];

const money = (cents: bigint): string => quotient(cents, 100n, 2);
const sum = (values: readonly bigint[]): bigint => values.reduce((all, one) => all + one, 0n);
const costs = (documents: readonly SandboxDocument[]): bigint => sum(documents.map(({ cost }) => cost));

/** Groups values by the columns of their key, in the order of the keys. */
function grouped<T>(all: readonly T[], key: (one: T) => Row, values: (group: T[]) => Row): Row[] {
  const groups = Map.groupBy(all, (one) => JSON.stringify(key(one)));
  return [...groups]
    .map(([text, group]): [Row, T[]] => [JSON.parse(text) as Row, group])
    .sort(([a], [b]) => compare(a, b))
    .map(([columns, group]) => [...columns, ...values(group)]);
}

/** Compares texts as Postgres does in the collation of the tests, C. */
function compare(a: Row, b: Row): number {
  for (const [at, one] of a.entries()) {
    const other = b[at] ?? '';
    if (one !== other) return one < other ? -1 : 1;
  }
  return 0;
}

/** Sorts by a column of amounts, the highest first. */
const byAmount = (column: number, limit: number) => (rows: Row[]) =>
  [...rows]
    .sort((a, b) => {
      const [one, other] = [scaledInteger(a[column] ?? '0'), scaledInteger(b[column] ?? '0')];
      return one === other ? 0 : one < other ? 1 : -1;
    })
    .slice(0, limit);

const monthOf = (day: number): string => `${toDate(day).slice(0, 7)}-01`;

/** Each unit in standard units, as a fraction. */
const standard: Readonly<Record<string, readonly [units: string, numerator: bigint, denominator: bigint]>> = {
  kWh: ['kWh', 1n, 1n],
  // 105 480 400 J
  'thm (US)': ['kWh', 1_054_804n, 36_000n],
  // 231 cubic inches of 2.54 cm, a thousand times
  'kgal (US)': ['cubic m', 3_785_411_784n, 1_000_000_000n],
};

const fine = 1_000_000_000n;

/** Usage of this many of the period's days, in billionths of a thousandth of the standard unit. */
function part({ reading, from, until, sign }: Period, days: number): bigint {
  const [, numerator, denominator] = standard[reading.units] ?? ['', 0n, 1n];
  return (
    (sign * BigInt(reading.usageMilli) * BigInt(days) * fine * numerator) /
    (BigInt(until - from) * denominator)
  );
}

const unitsOf = ({ reading }: Period): string => standard[reading.units]?.[0] ?? '';
const fineSum = (parts: readonly bigint[], places: number): string =>
  quotient(sum(parts), 1000n * fine, places);

interface Share {
  readonly period: Period;
  readonly month: string;
  readonly days: number;
}

/** Cuts periods at the ends of months; counts days that `counts` accepts. */
function shares(all: readonly Period[], counts: (period: Period, day: number) => boolean): Share[] {
  return all.flatMap((period) => {
    const days = Array.from({ length: period.until - period.from }, (_, at) => period.from + at);
    const months = Map.groupBy(
      days.filter((day) => counts(period, day)),
      monthOf,
    );
    return [...months].map(([month, { length }]) => ({ period, month, days: length }));
  });
}

function usageByMonth(data: SandboxData, months: readonly string[]): Share[] {
  const all = periods(data);
  const newest = newestOfDay(all);
  const counted = shares(all, ({ meter, document }, day) => newest.get(meter.id)?.get(day) === document.id);
  return counted.filter(({ month }) => months.includes(month));
}

const spring = ['2026-03-01', '2026-04-01', '2026-05-01'];

const local = new Intl.DateTimeFormat('en-CA', {
  timeZone: 'America/New_York',
  hourCycle: 'h23',
  weekday: 'short',
  year: 'numeric',
  month: '2-digit',
  day: '2-digit',
  hour: '2-digit',
  minute: '2-digit',
});

/** Returns date, time and weekday in New York, by Intl. */
function localTime({ at }: SandboxInterval): { date: string; time: string; weekday: string } {
  const parts = new Map(local.formatToParts(at).map(({ type, value }) => [type, value]));
  return {
    date: `${parts.get('year')}-${parts.get('month')}-${parts.get('day')}`,
    time: `${parts.get('hour')}:${parts.get('minute')}`,
    weekday: parts.get('weekday') ?? '',
  };
}

const duplicates = (data: SandboxData): Map<SandboxDocument, SandboxDocument> => {
  const byAge = effective(data).sort((a, b) => compare([a.created, a.id], [b.created, b.id]));
  const signature = (document: SandboxDocument) =>
    JSON.stringify([
      document.companyId,
      document.currency,
      `${document.cost}`,
      periods(data)
        .filter((period) => period.document === document)
        .map(({ meter, from, until, reading }) => [meter.id, from, until, reading.usageMilli].join())
        .sort(),
    ]);
  const place = (one: SandboxDocument) => [one.companyId, one.account, one.provider, one.billDate].join();
  const found = new Map<SandboxDocument, SandboxDocument>();
  for (const key of [place, signature]) {
    for (const [original, ...copies] of Map.groupBy(byAge, key).values()) {
      for (const copy of copies) found.set(copy, original as SandboxDocument);
    }
  }
  return found;
};

/**
 * The answer to each question of docs/guides/cookbook.md but those of an energy desk, computed from the sandbox's own
 * data without any of our SQL.
 */
export const answers: Readonly<Record<string, Answer>> = {
  'What was each company billed?': ({ now }) =>
    grouped(
      effective(now),
      (one) => [one.company, one.currency],
      (group) => [`${group.length}`, money(costs(group))],
    ),

  'What do the dearest sites cost?': ({ now }) =>
    byAmount(
      2,
      5,
    )(
      grouped(
        effective(now),
        (one) => [one.siteId, one.site, one.currency],
        (group) => [money(costs(group))],
      ).map((row) => row.slice(1)),
    ),

  'Which bills are the largest?': ({ now }) =>
    byAmount(
      4,
      5,
    )(
      effective(now).map((one) => [one.invoiceId, one.provider, one.billDate, one.currency, money(one.cost)]),
    ),

  'What is due in July?': ({ now }) =>
    grouped(
      effective(now).filter(({ dueDate }) => dueDate.startsWith('2026-07')),
      (one) => [one.currency],
      (group) => [`${group.length}`, money(sum(group.map(({ total }) => total)))],
    ),

  'What part of the cost is tax?': ({ now }) =>
    grouped(
      effective(now),
      (one) => [one.currency],
      (group) => {
        const tax = sum(group.map((one) => one.tax));
        return [money(tax), quotient(100n * tax, costs(group), 2)];
      },
    ),

  'What does a kWh cost, to supply and to deliver?': ({ now }) =>
    grouped(
      effective(now)
        .flatMap(({ currency, lines }) => lines.map((line) => ({ ...line, currency })))
        .filter((line) => line.electricityChargeType !== undefined && line.electricityIsDemand !== true),
      (line) => [line.currency, line.electricityChargeType ?? ''],
      (group) => {
        const cents = sum(group.map(({ totalCharge }) => scaledInteger(totalCharge)));
        // thousandths of a kWh
        return [quotient(cents * 10n, sum(group.map(({ quantity = '' }) => scaledInteger(quantity))), 5)];
      },
    ),

  'What is paid for demand?': ({ now }) =>
    grouped(
      effective(now).flatMap(({ currency, lines }) =>
        lines.filter((line) => line.electricityIsDemand === true).map((line) => ({ ...line, currency })),
      ),
      (line) => [line.currency],
      (group) => [`${group.length}`, money(sum(group.map(({ totalCharge }) => scaledInteger(totalCharge))))],
    ),

  'How much is used, month by month?': ({ now }) =>
    grouped(
      usageByMonth(now, spring),
      ({ period, month }) => [period.meter.type, month, unitsOf(period)],
      (group) => [
        fineSum(
          group.map(({ period, days }) => part(period, days)),
          1,
        ),
      ],
    ).map(([type = '', month = '', units = '', usage = '']) => [month, type, units, usage]),

  'How much water is that in cubic metres?': ({ now }) =>
    grouped(
      periods(now).filter(({ meter }) => meter.type === 'WATER'),
      ({ reading }) => [reading.units],
      (group) => [
        quotient(sum(group.map(({ reading }) => BigInt(reading.usageMilli))), 1000n, 3),
        'cubic m',
        fineSum(
          group.map((period) => part({ ...period, sign: 1n }, period.until - period.from)),
          3,
        ),
      ],
    ),

  'What did net-metered sites take from the grid, and give back?': ({ now }) => {
    const flow = (group: readonly Period[], type: string) => {
      const own = group.filter(({ meter }) => meter.netMetering === type);
      return sum(own.map(({ reading, sign }) => BigInt(reading.usageMilli) * sign));
    };
    const rows = grouped(
      periods(now).filter(({ meter }) => meter.netMetering !== null),
      ({ meter }) => [meter.siteId, meter.site],
      (group) => {
        const [taken, given] = [flow(group, 'IMPORT'), -flow(group, 'EXPORT')];
        return [taken, given, taken - given].map((milli) => quotient(milli, 1000n, 3));
      },
    );
    return byAmount(3, 5)(rows.map((row) => row.slice(1)));
  },

  'How much is excluded, as somebody else pays for it?': ({ now }) =>
    grouped(
      periods(now).filter(({ reading }) => reading.isExcluded === true),
      ({ reading }) => [reading.units],
      (group) => [
        `${group.length}`,
        quotient(sum(group.map(({ reading }) => BigInt(reading.usageMilli))), 1000n, 3),
      ],
    ),

  'How much is estimated?': ({ now }) =>
    grouped(
      periods(now),
      ({ meter }) => [meter.type],
      (group) => {
        const estimated = group.filter(({ reading }) => reading.isEstimated).length;
        return [
          `${estimated}`,
          `${group.length}`,
          quotient(BigInt(100 * estimated), BigInt(group.length), 1),
        ];
      },
    ),

  'What does the electricity emit?': ({ now }) =>
    grouped(
      usageByMonth(now, spring).filter(({ period }) => period.meter.type === 'ELECTRICITY'),
      ({ month }) => [month, '2026'],
      (group) => {
        const usage = sum(group.map(({ period, days }) => part(period, days)));
        return [quotient(usage * 35n, 100_000n * fine, 0)];
      },
    ),

  'How many bills count, and why do others not?': ({ now }) => {
    const reasonOf = (document: SandboxDocument) => {
      if (document.deleted) return 'deleted';
      return successorOf(now, document) === undefined ? 'counts' : 'superseded';
    };
    return byAmount(
      1,
      9,
    )(
      grouped(
        now.documents,
        (document) => [reasonOf(document)],
        (group) => [`${group.length}`],
      ),
    );
  },

  'Which bills were superseded, and what did that change?': ({ now }) =>
    now.documents
      .filter((document) => !document.deleted)
      .flatMap((old) => {
        const last = successorOf(now, old);
        if (last === undefined) return [];
        return [[old.invoiceId, last.invoiceId, old.currency, money(last.cost - old.cost)]];
      })
      .sort(compare)
      .slice(0, 5),

  'Which months are not billed completely?': ({ now }) => {
    const meters = [...Map.groupBy(periods(now), ({ meter }) => meter.id).values()];
    return ['2026-01-01', '2026-02-01', '2026-03-01', '2026-04-01'].map((month) => {
      const first = toDay(month);
      const length = toDay(`${toDate(first + 32).slice(0, 7)}-01`) - first;
      const coverage = meters.flatMap((own) => {
        const from = monthOf(Math.min(...own.map((period) => period.from)));
        const until = monthOf(Math.max(...own.map((period) => period.until - 1)));
        if (month < from || month > until) return [];
        const bills = Array.from({ length }, (_, at) => {
          const here = own.filter((period) => period.from <= first + at && first + at < period.until);
          return new Set(here.map(({ document }) => document.id)).size;
        });
        return [{ missing: bills.filter((n) => n === 0).length, doubly: bills.filter((n) => n > 1).length }];
      });
      const complete = coverage.filter(({ missing, doubly }) => missing + doubly === 0);
      const total = (key: 'missing' | 'doubly') => coverage.reduce((all, one) => all + one[key], 0);
      return [month, `${coverage.length}`, `${complete.length}`, `${total('missing')}`, `${total('doubly')}`];
    });
  },

  'Which bills came twice?': ({ now }) =>
    [...duplicates(now)]
      .map(([copy, original]) => [copy.invoiceId, original.invoiceId, copy.currency, money(copy.cost)])
      .sort(compare)
      .slice(0, 5),

  'Which accounts were billed in more than one currency?': ({ now }) =>
    grouped(
      effective(now),
      ({ account }) => [account],
      (group) => [[...new Set(group.map(({ currency }) => currency))].sort().join(', '), `${group.length}`],
    )
      .filter(([, currencies]) => currencies?.includes(','))
      .slice(0, 5),

  "When was each company's peak?": ({ now }) => {
    const names = new Map(now.documents.map(({ companyId, company }) => [companyId, company]));
    const kw = ({ milli, seconds }: SandboxInterval) => (milli * 3600n) / BigInt(seconds);
    const companies = Map.groupBy(
      now.intervals.filter(({ units }) => units === 'kWh'),
      ({ meter }) => names.get(meter.companyId) ?? '',
    );
    return [...companies]
      .map(([company, readings]) => {
        const highest = readings.reduce((best, one) => (kw(one) > kw(best) ? one : best));
        const { date, time } = localTime(highest);
        return [company, date, time, quotient(kw(highest), 1000n, 3)];
      })
      .sort(compare);
  },

  'Are the readings complete?': ({ now }) => {
    const days = grouped(
      now.intervals,
      (one) => [`${one.seconds}`, one.units, one.meter.id, localTime(one).date],
      (readings) => [`${readings.length}`],
    );
    // No clock change falls in these days.
    return grouped(
      days,
      ([seconds = '', units = '']) => [seconds, units],
      (group) => {
        const expected = 86_400 / Number(group[0]?.[0]);
        const readings = group.map((row) => Number(row[4]));
        const total = readings.reduce((all, one) => all + one, 0);
        return [
          `${group.length}`,
          `${readings.filter((n) => n === expected).length}`,
          `${total}`,
          `${expected * group.length}`,
        ];
      },
    ).sort(([a], [b]) => Number(a) - Number(b));
  },
};
