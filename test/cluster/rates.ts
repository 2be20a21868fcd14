import type { Figures } from '../../bench/measure.ts';
import { describeFigure } from '../../bench/report.ts';
import { markdownTable } from '../../verify/markdown.ts';

/** The figures of the same measures on both kinds of server, by the name of the measure. */
export interface Rates {
  readonly developmentServer: Readonly<Record<string, Figures>>;
  readonly cluster: Readonly<Record<string, Figures>>;
}

declare module 'vitest' {
  interface TaskMeta {
    rates?: Rates;
  }
}

/** The figures by which both kinds of server are compared, as measure, figure and description. */
const compared = [
  ['acknowledged', 'perSecond512', 'events acknowledged/s, 512 in flight'],
  ['acknowledged', 'perSecond64', 'events acknowledged/s, 64 in flight'],
  ['acknowledged', 'p99Ms512', 'p99 of an answer, 512 in flight, ms'],
  ['backfill', 'perSecond', 'documents/s of a backfill'],
  ['backfill', 'companiesPerSecond', 'small companies/s of a backfill'],
  ['lone', 'rowP50Ms', 'p50 until the row of a lone event, ms'],
] as const;

/** Makes rows with the figures of both servers side by side and their ratio. */
export function ratesRows({ developmentServer, cluster }: Rates): string[][] {
  return compared.map(([measure, name, words]) => {
    const [one, other] = [developmentServer, cluster].map((of) => of[measure]?.[name] ?? Number.NaN);
    return [words, ...[one, other, (other ?? 0) / (one ?? 0)].map((figure) => describeFigure(figure ?? 0))];
  });
}

export const ratesTable = (rates: Rates): string =>
  markdownTable(['Figure', 'Development server', 'Cluster', 'Ratio'], ratesRows(rates));
