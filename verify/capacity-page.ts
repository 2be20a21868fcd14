import { type AllMeasured, readMeasured } from '../bench/measured.ts';
import { markdownTable, replaceGenerated } from './markdown.ts';

/** Returns a figure in two digits, which is what a machine repeats. */
type FigureOf = (name: string) => string;

interface Capacity {
  readonly work: string;
  readonly figure: (of: FigureOf) => string;
  readonly bound: string;
}

const capacities: readonly Capacity[] = [
  {
    work: 'Deliveries acknowledged',
    figure: (of) =>
      `${of('acknowledged.perSecond512')} a second (a receiver alone: ${of('acknowledged.receiverAlonePerSecond512')})`,
    bound: "the receiver's core",
  },
  {
    work: 'Events into rows, records not read again',
    figure: (of) => `${of('growth.eventsPerSecond')} a second`,
    bound: 'Postgres',
  },
  {
    work: 'Events with their records read again',
    figure: (of) => `${of('live.settledPerSecond')} a second`,
    bound: 'requests, and all cores',
  },
  {
    work: 'First load, documents of 3.8 kB',
    figure: (of) => `${of('backfill.perSecond')} a second`,
    bound: 'one core of the worker, one of Postgres',
  },
  {
    work: 'Full backfill, nothing changed',
    figure: (of) => `${of('backfill.unchangedPerSecond')} documents a second`,
    bound: "the worker's core: parsing and digests",
  },
  {
    work: 'Small companies of a backfill',
    figure: (of) => `${of('backfill.companiesPerSecond')} a second`,
    bound: 'statements and requests for each',
  },
  {
    work: 'Readings',
    figure: (of) => `${of('intervals.freshPerSecond')} a second, again ${of('intervals.overlapPerSecond')}`,
    bound: 'Postgres',
  },
  {
    work: 'Checks of 200,000 bills',
    figure: (of) => `${of('checks.allMs')} ms; ${of('checks.companyMs')} ms for a company that changed`,
    bound: 'Postgres',
  },
  {
    work: 'Audit',
    figure: (of) => `${of('audit.readingsPerSecond')} readings a second in ${of('audit.peakMegabytes')} MB`,
    bound: 'the service',
  },
];

/** What a large customer's work took, and what ten times as much takes by measured growth. */
function customerTable(measured: AllMeasured): string {
  const of = (name: string): number => figureOf(measured, `customer.${name}`);
  const slowdown = 1 / figureOf(measured, 'growth.documentsLastOfFirst');
  const viewGrowth = figureOf(measured, 'analytics.medianGrowth');
  const rate = (figure: number) => `${twoDigits(figure)} a second`;
  const rows = [
    ['first load', duration(of('loadSeconds')), duration(10 * slowdown * of('loadSeconds'))],
    [
      'full backfill, nothing changed',
      duration(of('unchangedSeconds')),
      duration(10 * of('unchangedSeconds')),
    ],
    [
      'events, and records read again for them',
      `${rate(of('eventsSettledPerSecond'))}, ${twoDigits(of('recordsReadPerSecond'))}`,
      'the same',
    ],
    ['months of all companies', duration(of('monthsSeconds')), duration(10 * of('monthsSeconds'))],
    ['checks of all companies', duration(of('checksSeconds')), duration(10 * of('checksSeconds'))],
    [
      'slowest view of a company',
      `${twoDigits(of('slowestViewMs'))} ms`,
      `${twoDigits(viewGrowth * of('slowestViewMs'))} ms`,
    ],
    ['audit of 1 % of the companies', duration(of('auditSeconds')), duration(10 * of('auditSeconds'))],
    ['disk', `${twoDigits(of('diskMegabytes') / 1000)} GB`, `${twoDigits(of('diskMegabytes') / 100)} GB`],
  ];
  const size = `${twoDigits(of('bills'))} bills, ${twoDigits(of('readings'))} readings`;
  return markdownTable(['Work', size, 'Ten times that, by measured growth'], rows);
}

/** @throws Error where the figure was not kept */
function figureOf(measured: AllMeasured, name: string): number {
  const [measure = '', figure = ''] = name.split('.');
  const value = measured[measure]?.figures[figure];
  if (value === undefined) throw new Error(`bench/measured.json lacks ${name}`);
  return value;
}

const twoDigits = (figure: number): string => Number(figure.toPrecision(2)).toLocaleString('en');

const duration = (seconds: number): string =>
  seconds < 600 ? `${twoDigits(seconds)} s` : `${twoDigits(seconds / 60)} min`;

/** Makes the tables of docs/guides/capacity.md from the latest figures of bench/measured.json. */
export function capacityPage(page: string, measured: AllMeasured = readMeasured()): string {
  const of: FigureOf = (name) => twoDigits(figureOf(measured, name));
  const rows = capacities.map(({ work, figure, bound }) => [work, figure(of), bound]);
  const table = markdownTable(['Work', 'On 2 cores', 'What bounds it'], rows);
  return replaceGenerated(replaceGenerated(page, table), customerTable(measured), 'customer');
}
