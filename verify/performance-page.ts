import {
  type AllMeasured,
  describeFigure,
  describeGoal,
  goals,
  judge,
  type Measured,
  readMeasured,
} from '../bench/report.ts';
import { markdownTable, replaceGenerated } from './markdown.ts';

/** Creates docs/performance.md with the latest figures of bench/measured.json next to the goals of bench/report.ts. */
export function performancePage(page: string, measured: AllMeasured = readMeasured()): string {
  const title = '## Figures, goals and what was measured last';
  return replaceGenerated(page, [title, goalTable(measured), ...machines(measured)].join('\n\n'));
}

/** Lists the goals with measured figures, and then the goals without. */
function goalTable(measured: AllMeasured): string {
  const rows = Object.entries(goals).flatMap(([measure, ofMeasure]) =>
    Object.entries(ofMeasure).map(([name, goal]) => [
      `\`${measure}.${name}\``,
      describeGoal(goal),
      judgedFigure(measured, measure, name),
    ]),
  );
  const { known = [], unknown = [] } = Object.groupBy(rows, ([, , figure]) =>
    figure === '' ? 'unknown' : 'known',
  );
  const table = markdownTable(['Figure', 'Goal', 'Measured'], known);
  if (unknown.length === 0) return table;
  return `${table}\n\nNot measured yet: ${unknown.map(([name]) => name).join(', ')}.`;
}

/** Writes a figure and whether it missed its goal, or an empty text if it was not measured. */
function judgedFigure(measured: AllMeasured, measure: string, name: string): string {
  const { figures = {}, size = 'full' } = measured[measure] ?? {};
  const figure = figures[name];
  if (figure === undefined) return '';
  const isMissed = judge(measure, name, figure, size)?.reached === false;
  return `${describeFigure(figure)}${isMissed ? ', missed' : ''}`;
}

/** Lists for each machine its measures and when they were taken. */
function machines(measured: AllMeasured): string[] {
  const byMachine = Map.groupBy(Object.entries(measured), ([, { machine }]) => machine);
  return [...byMachine].map(([machine, taken]) => {
    const byDay = Map.groupBy(taken, ([, { takenOn }]) => takenOn);
    const days = [...byDay].map(([day, those]) => `on ${day} ${those.map(nameWithSize).join(', ')}`);
    return `Measured on ${machine}: ${days.join('; ')}.`;
  });
}

const nameWithSize = ([name, { size }]: [string, Measured]): string =>
  `\`${name}\`${size === 'full' ? '' : ` (${size})`}`;
