import { longerOf } from './alarms.ts';
import type { FaultReport } from './fault.ts';

/** Describes the results of a run, for a terminal. */
export function describeReports(reports: readonly FaultReport[]): string {
  return rowsOf(reports)
    .map((cells) => cells.filter((cell) => cell !== '').join(' | '))
    .join('\n');
}

/** Makes one row for each fault, over all its seeds. */
function rowsOf(reports: readonly FaultReport[]): string[][] {
  const byFault = Map.groupBy(reports, ({ fault }) => fault);
  return [...byFault.entries()].map(([fault, runs]) => {
    const sum = (of: (run: FaultReport) => number) => runs.reduce((total, run) => total + of(run), 0);
    const rates = runs.flatMap(({ perSecond }) => (perSecond === undefined ? [] : [Math.round(perSecond)]));
    const rate = rates.length === 0 ? '' : `, ${Math.min(...rates)}`;
    const [events, dead] = [sum(({ figures }) => figures.events), sum(({ figures }) => figures.dead)];
    return [
      fault,
      [...new Set(runs.map(({ title }) => title))].join('; '),
      rangeOf(runs.map(({ seed }) => seed)),
      injectedOver(runs),
      `${events.toLocaleString('en')}${rate}${dead === 0 ? '' : `; ${dead} dead`}`,
      otherAnswers(runs, events),
      sum(({ figures }) => figures.compared).toLocaleString('en'),
      alarmsOver(runs),
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
