import { readFileSync, writeFileSync } from 'node:fs';
import { cpus, totalmem } from 'node:os';
import { fileURLToPath } from 'node:url';
import { table } from '../cli/terminal.ts';
import type { Figures } from './measure.ts';
import type { SizeName } from './size.ts';

/** A goal with which a figure is compared. */
type Goal = { readonly atLeast: number } | { readonly atMost: number } | { readonly below: number };

/** Goals at full size, by measure and figure. Other figures have no goal. */
export const goals: Readonly<Record<string, Readonly<Record<string, Goal>>>> = {
  cost: {
    allMsInFlight1: { atMost: 16 },
    allMsInFlight16: { atMost: 1.6 },
    allMsInFlight64: { atMost: 0.6 },
    allMsInFlight512: { atMost: 0.42 },
  },
  lone: {
    ackP50Ms: { below: 20 },
    rowP50Ms: { below: 35 },
    rowP99Ms: { below: 300 },
    recordP50Ms: { below: 120 },
  },
  live: {
    acknowledgedPerSecond: { atLeast: 500 },
    answerP99Ms: { below: 250 },
    rowP50Ms: { below: 120 },
    rowP99Ms: { below: 1_000 },
    recordsPerSecond: { atLeast: 300 },
    // No growth, except what repeated measurements of resident memory differ by.
    rssGrowthMb: { atMost: 10 },
  },
  backfill: {
    ofFetchOnly: { atLeast: 0.2 },
    unchangedTimesFirst: { atLeast: 3 },
    companiesPerSecond: { atLeast: 60 },
  },
  intervals: { freshOfCopy: { atLeast: 0.55 }, overlapOfCopy: { atLeast: 0.45 } },
  analytics: {
    slowestViewMs: { atMost: 300 },
    monthlyUsageMs: { atMost: 500 },
    monthlySumsMs: { atMost: 500 },
    slowestJoinSeconds: { atMost: 30 },
    slowestJoinOfOneMs: { atMost: 300 },
    largeUsageOfMonthsMs: { atMost: 2_000 },
    largeMonthlySumsMs: { atMost: 2_000 },
  },
  console: {
    healthMs: { atMost: 50 },
    slowestPageMs: { atMost: 300 },
    largeHealthMs: { atMost: 50 },
    largeSlowestPageMs: { atMost: 300 },
  },
  peers: {
    backfillTimesDlt: { atLeast: 3 },
    acknowledged512TimesStripeSync: { atLeast: 4 },
    acknowledged64TimesStripeSync: { atLeast: 1 },
    appliedTimesStripeSync: { atLeast: 2 },
  },
  growth: { documentsLastOfFirst: { atLeast: 0.8 }, eventsWaitingOfNone: { atLeast: 0.8 } },
};

/** Measures whose goals depend on the amount of data, so that a smaller size proves nothing. */
const aboutSize: ReadonlySet<string> = new Set(['analytics', 'console']);

/** A figure's goal, in words, and whether it is reached; undefined without a goal for this size. */
export function judge(
  measure: string,
  name: string,
  figure: number,
  size: SizeName,
): { readonly goal: string; readonly reached: boolean } | undefined {
  const goal = goals[measure]?.[name];
  if (goal === undefined || (size !== 'full' && aboutSize.has(measure))) return undefined;
  return { goal: describeGoal(goal), reached: isReached(goal, figure) };
}

function isReached(goal: Goal, figure: number): boolean {
  if ('atLeast' in goal) return figure >= goal.atLeast;
  return 'atMost' in goal ? figure <= goal.atMost : figure < goal.below;
}

export function describeGoal(goal: Goal): string {
  if ('atLeast' in goal) return `≥ ${goal.atLeast}`;
  return 'atMost' in goal ? `≤ ${goal.atMost}` : `< ${goal.below}`;
}

/** Figures by measure, as `--json` writes them. */
export type Report = Record<string, Figures>;

/** Describes every figure in a table, with its goal and whether it is reached. */
export function describeReport(report: Report, size: SizeName): string {
  const rows = Object.entries(report).flatMap(([measure, figures]) =>
    Object.entries(figures).map(([name, figure]) => {
      const { goal = '', reached } = judge(measure, name, figure, size) ?? {};
      const verdict = reached === undefined ? '' : reached ? 'reached' : 'missed';
      return [`${measure}.${name}`, describeFigure(figure), goal, verdict];
    }),
  );
  return table(['figure', 'measured', 'goal', ''], rows).join('\n');
}

/** Shows three digits. Measurements on a shared machine do not even repeat these. */
export function describeFigure(figure: number): string {
  if (Math.abs(figure) >= 100) return Math.round(figure).toLocaleString('en');
  return String(Number(figure.toPrecision(3)));
}

/** The latest kept result of a measure, for docs/performance.md. */
export interface Measured {
  /** The kind of machine: cores and memory. */
  readonly machine: string;
  readonly size: SizeName;
  /** The day, or the days if its parts were taken on different days. */
  readonly takenOn: string;
  readonly figures: Figures;
}
export type AllMeasured = Readonly<Record<string, Measured>>;

const path = fileURLToPath(new URL('measured.json', import.meta.url));

export const readMeasured = (): AllMeasured => JSON.parse(readFileSync(path, 'utf8')) as AllMeasured;

/** Keeps a report. It replaces earlier results of the same measures. */
export function keepMeasured(report: Report, size: SizeName): void {
  const now = { machine: machine(), size, takenOn: new Date().toISOString().slice(0, 10) };
  const fresh = Object.entries(report).map(([measure, figures]) => [
    measure,
    { ...now, figures: rounded(figures) },
  ]);
  const all = { ...readMeasured(), ...Object.fromEntries(fresh) };
  const sorted = Object.fromEntries(Object.entries(all).toSorted(([a], [b]) => (a < b ? -1 : 1)));
  writeFileSync(path, `${JSON.stringify(sorted, null, 2)}\n`);
}

const rounded = (figures: Figures): Figures =>
  Object.fromEntries(Object.entries(figures).map(([name, figure]) => [name, Number(figure.toPrecision(3))]));

export function machine(): string {
  const gigabytes = Math.round(totalmem() / 2 ** 30);
  return `${cpus().length} cores (${cpus()[0]?.model.trim()}), ${gigabytes} GB of memory`;
}
