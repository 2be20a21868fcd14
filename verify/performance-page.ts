import { describeGoal, goals, isJudged, isReached } from '../bench/goals.ts';
import { type AllMeasured, type Measured, readMeasured } from '../bench/measured.ts';
import { versions } from '../bench/peers/install.ts';
import { describeFigure } from '../bench/report.ts';
import { markdownTable, replaceGenerated } from './markdown.ts';

/**
 * Makes docs/performance.md with the latest figures of bench/measured.json beside the goals of
 * bench/goals.ts.
 */
export function performancePage(page: string, measured: AllMeasured = readMeasured()): string {
  const parts = [
    '## Figures, goals and what was measured last',
    '',
    goalTable(measured),
    '',
    ...machines(measured).flatMap((line) => [line, '']),
    '## Compared with peers',
    '',
    ...peersTable(measured),
  ];
  return replaceGenerated(page, parts.join('\n'));
}

/** Lists the goals but those of peers, which stand with the peers' figures; then those without a figure. */
function goalTable(measured: AllMeasured): string {
  const { peers: _, ...others } = goals;
  const rows = Object.entries(others).flatMap(([measure, ofMeasure]) =>
    Object.keys(ofMeasure).map((name) => rowOf(measured, measure, name)),
  );
  const { known = [], unknown = [] } = Object.groupBy(rows, ([, , figure]) =>
    figure === '' ? 'unknown' : 'known',
  );
  const table = markdownTable(head, known);
  if (unknown.length === 0) return table;
  return `${table}\n\nNot measured yet: ${unknown.map(([name]) => name).join(', ')}.`;
}

const head = ['Figure', 'Goal', 'Measured'];

function rowOf(measured: AllMeasured, measure: string, name: string): [string, string, string] {
  const goal = goals[measure]?.[name];
  return [
    `\`${measure}.${name}\``,
    goal === undefined ? '' : describeGoal(goal),
    judgedFigure(measured, measure, name),
  ];
}

/** Writes a figure, and whether its goal was missed; empty if it was not measured. */
function judgedFigure(measured: AllMeasured, measure: string, name: string): string {
  const { figures = {}, size } = measured[measure] ?? {};
  const [figure, goal] = [figures[name], goals[measure]?.[name]];
  if (figure === undefined) return '';
  const judged = goal !== undefined && size !== undefined && isJudged(measure, size);
  return `${describeFigure(figure)}${judged && !isReached(goal, figure) ? ', missed' : ''}`;
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

/** Lists every figure of the comparison with peers. */
function peersTable(measured: AllMeasured): string[] {
  const { peers } = measured;
  if (peers === undefined) return ['Not measured yet: `npm run bench -- peers --keep`.'];
  const { machine, takenOn, size, figures } = peers;
  return [
    `On ${machine}, ${takenOn}, ${size} size, in turn in one run, with dlt ${versions.dlt} and stripe-sync-engine ${versions.stripeSyncEngine}.`,
    '',
    markdownTable(
      head,
      Object.keys(figures).map((name) => rowOf(measured, 'peers', name)),
    ),
  ];
}
