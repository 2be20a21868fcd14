import { markdownTable, replaceGenerated } from '../../verify/markdown.ts';
import { longerOf } from './alarms.ts';
import type { FaultReport } from './fault.ts';

const head = [
  'Fault',
  'Seeds',
  'Injected',
  'Events, a second',
  'Other answers',
  'Compared',
  'Alarms',
  'Commit',
];

/** Makes one row for each fault, over all its seeds. */
export function rowsOf(reports: readonly FaultReport[], commit: string): string[][] {
  const byFault = Map.groupBy(reports, ({ fault }) => fault);
  return [...byFault.entries()].map(([fault, runs]) => {
    const sum = (of: (run: FaultReport) => number) => runs.reduce((total, run) => total + of(run), 0);
    const rates = runs.flatMap(({ perSecond }) => (perSecond === undefined ? [] : [Math.round(perSecond)]));
    const rate = rates.length === 0 ? '' : `, ${Math.min(...rates)}`;
    const [events, dead] = [sum(({ figures }) => figures.events), sum(({ figures }) => figures.dead)];
    return [
      fault,
      rangeOf(runs.map(({ seed }) => seed)),
      injectedOver(runs),
      `${events.toLocaleString('en')}${rate}${dead === 0 ? '' : `; ${dead} dead`}`,
      otherAnswers(runs, events),
      sum(({ figures }) => figures.compared).toLocaleString('en'),
      alarmsOver(runs),
      commit,
    ];
  });
}

/** Returns a text with the least and the greatest of some numbers. The seeds of a run are consecutive. */
function rangeOf(numbers: readonly number[]): string {
  const [least, greatest] = [Math.min(...numbers), Math.max(...numbers)];
  return least === greatest ? String(least) : `${least} to ${greatest}`;
}

function injectedOver(runs: readonly FaultReport[]): string {
  const kills = runs.reduce((sum, { figures }) => sum + figures.kills, 0);
  const others = new Set(runs.map(({ injected }) => injected).filter((injected) => injected !== ''));
  return [...(kills > 0 ? [`${kills} kill${kills === 1 ? '' : 's'}`] : []), ...others].join('; ');
}

/** Returns the number of answers by status. One 204 for each event is not counted. */
function otherAnswers(runs: readonly FaultReport[], events: number): string {
  const total: Record<string, number> = { 204: -events };
  for (const { figures } of runs)
    for (const [status, n] of Object.entries(figures.answers)) total[status] = (total[status] ?? 0) + n;
  return Object.entries(total)
    .filter(([, n]) => n !== 0)
    .map(([status, n]) => `${n.toLocaleString('en')} × ${status}`)
    .join(', ');
}

/** Returns the alarms that were raised, each with the longest time until it was raised. */
function alarmsOver(runs: readonly FaultReport[]): string {
  const longest = new Map<string, number | null>();
  for (const { name, afterSeconds } of runs.flatMap(({ figures }) => figures.alarms))
    longest.set(name, longerOf(longest.get(name) ?? null, afterSeconds));
  return [...longest].map(([name, seconds]) => (seconds === null ? name : `${name} ${seconds} s`)).join(', ');
}

/** Describes the results of a run, for a terminal. */
export function describeReports(reports: readonly FaultReport[]): string {
  const titles = new Map(reports.map(({ fault, title }) => [fault, title]));
  return rowsOf(reports, '')
    .map(([fault = '', ...cells]) => [fault, titles.get(fault) ?? '', ...cells])
    .map((cells) => cells.filter((cell) => cell !== '').join(' | '))
    .join('\n');
}

/** A table of the page, for the faults whose names begin with the given letter. */
export interface FaultTable {
  readonly letter: 'C' | 'T' | 'P';
  /** The name of the generated part that contains the table, if it has a name. */
  readonly part?: string;
}

/** Replaces the rows of the given faults in their table. Other faults keep their rows. */
export function pageWith(
  page: string,
  reports: readonly FaultReport[],
  commit: string,
  { letter, part }: FaultTable,
): string {
  const name = new RegExp(`^${letter}\\d+`);
  const rows = new Map<string, string[]>();
  for (const line of page.split('\n')) {
    const cells = line.split(' | ').map((cell) => cell.replace(/^\| | \|$/g, ''));
    const fault = name.exec(cells[0] ?? '')?.[0];
    if (fault !== undefined && cells.length === head.length) rows.set(fault, cells);
  }
  for (const row of rowsOf(reports, commit)) rows.set(name.exec(row[0] ?? '')?.[0] ?? '', row);
  const inOrder = [...rows.entries()].sort(([a], [b]) => Number(a.slice(1)) - Number(b.slice(1)));
  return replaceGenerated(
    page,
    markdownTable(
      head,
      inOrder.map(([, row]) => row),
    ),
    part,
  );
}
