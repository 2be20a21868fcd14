import { type AllMeasured, readMeasured } from '../bench/measured.ts';
import { markdownTable, replaceGenerated } from './markdown.ts';

/** Returns a figure in two digits, which is what a machine repeats. */
type FigureOf = (name: string) => string;

interface Capacity {
  readonly work: string;
  /** The measures that its figures are of. */
  readonly measures: readonly string[];
  readonly figure: (of: FigureOf) => string;
  readonly bound: string;
}

const capacities: readonly Capacity[] = [
  {
    work: 'Deliveries acknowledged',
    measures: ['acknowledged'],
    figure: (of) =>
      `${of('acknowledged.perSecond512')} a second (a receiver alone: ${of('acknowledged.receiverAlonePerSecond512')})`,
    bound: "the receiver's core",
  },
  {
    work: 'Events into rows, records not read again',
    measures: ['growth'],
    figure: (of) => `${of('growth.eventsPerSecond')} a second`,
    bound: 'Postgres',
  },
  {
    work: 'Events with their records read again',
    measures: ['live'],
    figure: (of) => `${of('live.settledPerSecond')} a second`,
    bound: 'requests, and all cores',
  },
  {
    work: 'First load, documents of 3.8 kB',
    measures: ['backfill'],
    figure: (of) => `${of('backfill.perSecond')} a second`,
    bound: 'one core of the worker, one of Postgres',
  },
  {
    work: 'Full backfill, nothing changed',
    measures: ['backfill'],
    figure: (of) => `${of('backfill.unchangedPerSecond')} documents a second`,
    bound: "the worker's core: parsing and digests",
  },
  {
    work: 'Small companies of a backfill',
    measures: ['backfill'],
    figure: (of) => `${of('backfill.companiesPerSecond')} a second`,
    bound: 'statements and requests for each',
  },
  {
    work: 'Readings',
    measures: ['intervals'],
    figure: (of) => `${of('intervals.freshPerSecond')} a second, again ${of('intervals.overlapPerSecond')}`,
    bound: 'Postgres',
  },
  {
    work: 'Checks of 200,000 bills',
    measures: ['checks'],
    figure: (of) => `${of('checks.allMs')} ms; ${of('checks.companyMs')} ms for a company that changed`,
    bound: 'Postgres',
  },
  {
    work: 'Audit',
    measures: ['audit'],
    figure: (of) => `${of('audit.readingsPerSecond')} readings a second in ${of('audit.peakMegabytes')} MB`,
    bound: 'the service',
  },
];

/** Makes the table of docs/guides/capacity.md from the latest figures of bench/measured.json. */
export function capacityPage(page: string, measured: AllMeasured = readMeasured()): string {
  const of: FigureOf = (name) => {
    const [measure = '', figure = ''] = name.split('.');
    const value = measured[measure]?.figures[figure];
    if (value === undefined) throw new Error(`bench/measured.json lacks ${name}`);
    return Number(value.toPrecision(2)).toLocaleString('en');
  };
  const rows = capacities
    .filter(({ measures }) => measures.every((measure) => measure in measured))
    .map(({ work, figure, bound }) => [work, figure(of), bound]);
  return replaceGenerated(page, markdownTable(['Work', 'On 2 cores', 'What bounds it'], rows));
}
