import type { Severity } from '../../contract/names.ts';
import type { MonthlyUsage, Report } from '../../db/read/report.ts';
import { amount, monthOf, percent, several, weekdays, whole } from './amounts.ts';

/** The one line of each part: what the page shows large and the terminal prints. */
export interface Figures {
  readonly cost: string;
  readonly load: string;
  readonly coverage: string;
  readonly corrections: string;
  readonly attention: string;
  readonly issues: string;
  readonly freshness: string;
}

export const scopeOf = ({ company }: Report): string =>
  company === null ? 'all companies' : (company.name ?? company.id);

export const countsOf = ({ counts }: Report): string =>
  `${several(counts.companies, 'company', 'companies')}, ${several(counts.meters, 'meter')}, ${several(counts.bills, 'bill that counts', 'bills that count')}`;

export const isEmpty = ({ counts, freshness, load, cost }: Report): boolean =>
  counts.meters + counts.bills + freshness.connections + load.length + cost.length === 0;

export function figuresOf(report: Report): Figures {
  return {
    cost: costFigure(report),
    load: loadFigure(report),
    coverage: coverageFigure(report),
    corrections: correctionsFigure(report),
    attention: `${whole(report.attention.total)} of ${several(report.freshness.connections, 'connection')}`,
    issues: issuesFigure(report),
    freshness: freshnessFigure(report),
  };
}

/** The last month, each currency by itself. */
function costFigure({ cost }: Report): string {
  const month = cost.at(-1)?.month;
  if (month === undefined) return 'none';
  const last = cost.filter((row) => row.month === month);
  const amounts = last.map((row) => `${amount(row.cost)} ${row.currency ?? '(no currency)'}`);
  return `${amounts.join(' and ')} in ${monthOf(month)}`;
}

/** A commodity in one unit over the months; `latest` is its last month with any day billed. */
export interface UsageSeries {
  readonly name: string;
  readonly units: string;
  readonly rows: readonly MonthlyUsage[];
  readonly latest: string;
}

export function usageSeries({ usage }: Report): UsageSeries[] {
  const series = new Map<string, MonthlyUsage[]>();
  for (const row of usage) {
    const key = JSON.stringify([row.commodity, row.units]);
    series.set(key, [...(series.get(key) ?? []), row]);
  }
  return [...series.values()].flatMap((rows) => {
    const last = rows.findLast((row) => row.usage !== null);
    if (last === undefined) return [];
    const units = last.units ?? 'no unit';
    const name = last.commodity === null ? 'unknown commodity' : last.commodity.toLowerCase();
    const latest = `${amount(last.usage)} ${units} in ${monthOf(last.month)}`;
    return [{ name: `${name}, ${units}`, units, rows, latest }];
  });
}

function loadFigure({ load }: Report): string {
  const highest = load
    .filter(({ kw }) => kw !== null)
    .reduce<Report['load'][number] | undefined>(
      (most, cell) => (most === undefined || Number(cell.kw) > Number(most.kw) ? cell : most),
      undefined,
    );
  if (highest === undefined) return 'none';
  const hour = `${String(highest.hour).padStart(2, '0')}:00`;
  return `Highest mean ${amount(highest.kw, 1)} kW, ${weekdays[highest.weekday - 1]} ${hour}`;
}

function coverageFigure({ coverage }: Report): string {
  const last = coverage.at(-1);
  if (last === undefined) return 'none';
  return `${percent(last.bills)} of days billed, ${percent(last.readings)} of time read, in ${monthOf(last.month)}`;
}

/** Each kind of change and currency by itself: the bill in a superseded one's place is a new one, and not in here. */
function correctionsFigure({ corrections }: Report): string {
  if (corrections.byChange.length === 0) return 'none';
  return corrections.byChange
    .map(({ what, currency, bills, change }) => {
      const cost = change === null ? '' : ` (${amount(change)} ${currency ?? '(no currency)'})`;
      return `${whole(bills)} ${what}${cost}`;
    })
    .join(', ');
}

function issuesFigure({ issues }: Report): string {
  const sum = (many: (one: Report['issues'][number]) => number) =>
    issues.reduce((total, one) => total + many(one), 0);
  const of = (severity: Severity) => sum((one) => (one.severity === severity ? one.open : 0));
  const counted = [
    several(of('error'), 'error'),
    several(of('warning'), 'warning'),
    several(of('info'), 'info'),
  ];
  const acknowledged = sum((one) => one.acknowledged);
  return `${counted.join(', ')}${acknowledged === 0 ? '' : `; acknowledged: ${whole(acknowledged)} more`}`;
}

function freshnessFigure({ freshness }: Report): string {
  const { connections, late, byCause } = freshness;
  const causes = byCause.map((row) => `${whole(row.connections)} for ${row.cause}`);
  return `${whole(late)} of ${several(connections, 'connection')} late${causes.length === 0 ? '' : `: waiting, ${causes.join(', ')}`}`;
}

/** The figures in lines for a terminal. */
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
    `cost: ${figures.cost}`,
    ...usageSeries(report).map(({ name, latest }) => `usage, ${name}: ${latest}`),
    `load: ${figures.load}`,
    `coverage: ${figures.coverage}`,
    `corrections: ${figures.corrections}`,
    `needing attention: ${figures.attention}`,
    ...report.attention.connections.map(
      (one) =>
        `  ${one.company ?? one.connectionId}, ${one.provider ?? 'unknown'}: ${one.status}: ${one.whatToDo}`,
    ),
    `issues of the data: ${figures.issues}`,
    `freshness: ${figures.freshness}`,
    'metersync report --html FILE draws it.',
  ];
}
