import { counted } from '../../contract/words.ts';
import type { Report } from '../../db/read/report.ts';

/** The main line of each part, which the page shows large and the terminal prints. */
interface Figures {
  readonly cost: string;
  readonly load: string;
  readonly coverage: string;
  readonly corrections: string;
  readonly freshness: string;
}

export const scopeOf = ({ company }: Report): string =>
  company === null ? 'all companies' : (company.name ?? company.id);

export const countsOf = ({ counts }: Report): string =>
  `${counted(counts.companies, 'company', 'companies')}, ${counted(counts.meters, 'meter')}, ${counted(counts.bills, 'bill that counts', 'bills that count')}`;

export const isEmpty = ({ counts, freshness, load, cost }: Report): boolean =>
  counts.meters + counts.bills + freshness.connections + load.hours.length + cost.length === 0;

export function figuresOf(report: Report): Figures {
  return {
    cost: costFigure(report),
    load: loadFigure(report),
    coverage: coverageFigure(report),
    corrections: correctionsFigure(report),
    freshness: freshnessFigure(report),
  };
}

/** Finds the last month that has ended (an open month looks like a collapse), or else the last row. */
const lastEnded = <T extends { readonly month: string }>(rows: readonly T[], madeAt: string): T | undefined =>
  rows.findLast(({ month }) => hasEnded(month, madeAt)) ?? rows.at(-1);

/** Describes the cost of the last ended month of each currency: `2.00 CAD and 1.00 USD in 2026-02, 5.00 EUR in …`. */
function costFigure({ cost, madeAt }: Report): string {
  const ofCurrencies = [...Map.groupBy(cost, ({ currency }) => currency).values()];
  const last = ofCurrencies.flatMap((rows) => lastEnded(rows, madeAt) ?? []);
  const months = [...Map.groupBy(last, ({ month }) => month)].sort(([a], [b]) => (a < b ? 1 : -1));
  const figures = months.map(([month, rows]) => {
    const amounts = rows.map((row) => `${amount(row.cost)} ${row.currency ?? '(no currency)'}`);
    return `${amounts.join(' and ')} in ${monthAt(month, madeAt)}`;
  });
  return figures.length === 0 ? 'none' : figures.join(', ');
}

/** Describes the bills that no month has: `2 bills (3.00 EUR) without dates`; empty if there are none. */
export function undatedCost({ undated }: Report): string {
  if (undated.cost.length === 0) return '';
  const bills = undated.cost.map((row) => {
    const cost = row.cost === null ? '' : ` (${amount(row.cost)} ${row.currency ?? 'without currency'})`;
    return `${counted(row.bills, 'bill')}${cost}`;
  });
  return `${bills.join(' and ')} without dates`;
}

/** Usage of a commodity in one unit. `latest` describes the last ended month with any day billed. */
interface UsageSeries {
  readonly name: string;
  readonly units: string;
  readonly rows: Report['usage'];
  readonly latest: string;
  readonly undated: string;
}

export function usageSeries({ usage, undated, madeAt }: Report): UsageSeries[] {
  const keyOf = (row: Report['undated']['usage'][number]): string =>
    JSON.stringify([row.commodity, row.units]);
  const keys = new Set([...usage, ...undated.usage].map(keyOf));
  return [...keys].flatMap((key) => {
    const rows = usage.filter((row) => keyOf(row) === key);
    const last = lastEnded(
      rows.filter((row) => row.usage !== null),
      madeAt,
    );
    const rest = undated.usage.find((row) => keyOf(row) === key);
    const any = last ?? rest;
    if (any === undefined) return [];
    const units = any.units ?? 'no unit';
    const commodity = any.commodity === null ? 'unknown commodity' : any.commodity.toLowerCase();
    return [
      {
        name: `${commodity}, ${units}`,
        units,
        rows,
        latest:
          last === undefined ? 'none' : `${amount(last.usage)} ${units} in ${monthAt(last.month, madeAt)}`,
        undated: rest === undefined ? '' : `${amount(rest.usage)} ${units} without dates`,
      },
    ];
  });
}

/** Describes the zones of days and hours: `in UTC: no time zone is set for 3 of 30 sites (metersync …)`. */
export function zonesOf({ timeZones }: Report): string {
  const sites = timeZones.reduce((sum, zone) => sum + zone.sites, 0);
  const unset = timeZones.find(({ source }) => source === 'default')?.sites ?? 0;
  const set = new Set(timeZones.filter(({ source }) => source !== 'default').map(({ timeZone }) => timeZone));
  const names = set.size > 3 ? `${set.size} time zones` : [...set].join(' and ');
  if (unset === 0) return set.size === 0 ? 'in UTC' : `in ${names}, as set for all sites`;
  const missing = `no time zone is set for ${formatCount(unset)} of ${counted(sites, 'site')} (metersync sites)`;
  return set.size === 0 ? `in UTC: ${missing}` : `in ${names}, and in UTC where ${missing}`;
}

function loadFigure(report: Report): string {
  const highest = report.load.hours
    .filter(({ kw }) => kw !== null)
    .reduce<Report['load']['hours'][number] | undefined>(
      (most, cell) => (most === undefined || Number(cell.kw) > Number(most.kw) ? cell : most),
      undefined,
    );
  if (highest === undefined) return 'none';
  const hour = `${String(highest.hour).padStart(2, '0')}:00`;
  return `Highest mean ${amount(highest.kw, 1)} kW, ${weekdays[highest.weekday - 1]} ${hour}, of ${metersOfLoad(report)}, ${zonesOf(report)}`;
}

/** Says which meters the load stands for: `11 of 36 meters`. */
export const metersOfLoad = ({ load: { meters, metersOfAll } }: Report): string =>
  `${formatCount(meters)} of ${counted(metersOfAll, 'meter')}`;

function coverageFigure({ coverage, madeAt }: Report): string {
  const last = lastEnded(coverage, madeAt);
  if (last === undefined) return 'none';
  const billed = last.bills === null ? 'no bills' : `${percent(last.bills)} of days billed`;
  const read = last.readings === null ? 'no readings' : `readings of ${percent(last.readings)} of the time`;
  return `${billed}, ${read} in ${monthAt(last.month, madeAt)}`;
}

/** Describes corrections by kind and currency. A bill that replaces another is new, and not counted. */
function correctionsFigure({ corrections }: Report): string {
  if (corrections.byChange.length === 0) return 'none';
  const moved = corrections.byChange.filter(({ what }) => what === 'moved');
  const others = corrections.byChange
    .filter(({ what }) => what !== 'moved')
    .map(({ what, currency, bills, change }) => {
      const cost = change === null ? '' : ` (${amount(change)} ${currency ?? '(no currency)'})`;
      return `${formatCount(bills)} ${what}${cost}`;
    });
  const bills = moved.reduce((sum, row) => sum + row.bills, 0);
  return [...others, ...(bills === 0 ? [] : [`${formatCount(bills)} moved to another account`])].join(', ');
}

function freshnessFigure({ freshness }: Report): string {
  const { connections, late, byCause } = freshness;
  const causes = byCause.map((row) => `${formatCount(row.connections)} for ${row.cause}`);
  return `${formatCount(late)} of ${counted(connections, 'connection')} late${causes.length === 0 ? '' : `: waiting, ${causes.join(', ')}`}`;
}

const withUndated = (figure: string, undated: string): string =>
  undated === '' ? figure : `${figure}; not in any month: ${undated}`;

export function reportText(report: Report): string[] {
  const head = `${scopeOf(report)}: ${countsOf(report)}`;
  if (isEmpty(report))
    return [
      head,
      'There is nothing in the warehouse yet: run metersync backfill all, or name another company.',
    ];
  const figures = figuresOf(report);
  return [
    head,
    `cost: ${withUndated(figures.cost, undatedCost(report))}`,
    ...usageSeries(report).map(
      ({ name, latest, undated }) => `usage, ${name}: ${withUndated(latest, undated)}`,
    ),
    `load: ${figures.load}`,
    `coverage: ${figures.coverage}`,
    `corrections: ${figures.corrections}`,
    `freshness: ${figures.freshness}`,
    'To draw it: metersync report --html FILE',
  ];
}

/** Formats an amount. It comes as text and never becomes a float: Intl reads decimal text exactly. */
export function amount(text: string | null, places = 2): string {
  if (text === null) return '–';
  const format = new Intl.NumberFormat('en', {
    maximumFractionDigits: places,
    minimumFractionDigits: places,
    // An amount that rounds to zero has no sign.
    signDisplay: 'negative',
  });
  return format.format(text as Intl.StringNumericLiteral);
}

export const formatCount = (count: number): string => count.toLocaleString('en');

const percents = new Intl.NumberFormat('en', {
  style: 'percent',
  minimumFractionDigits: 1,
  roundingMode: 'trunc',
});

/** Formats a share from 0 to 1 as percent, rounded down, so that 100 % means all. */
export const percent = (text: string | null): string =>
  text === null ? '–' : percents.format(text as Intl.StringNumericLiteral).replace('%', ' %');

/** Formats the first day of a month as `2026-03`. */
const monthOf = (day: string): string => day.slice(0, 7);

/** Formats a month, and marks it if it had not ended at a time. */
export const monthAt = (day: string, time: string): string =>
  hasEnded(day, time) ? monthOf(day) : `${monthOf(day)} so far`;

/** Whether the month of a first day was over at a time in UTC. */
const hasEnded = (day: string, time: string): boolean => monthOf(day) < monthOf(time);

export const timeOf = (time: string | null): string =>
  time === null ? '–' : time.replace('T', ' ').replace(/:\d\dZ$/, '');

export const weekdays = ['Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat', 'Sun'] as const;
