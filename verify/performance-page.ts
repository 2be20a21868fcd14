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
    '## Beside peers',
    '',
    ...peersTable(measured),
  ];
  return replaceGenerated(page, parts.join('\n'));
}

/** Lists the goals but those of peers, which stand beside the peers' figures; then those without a figure. */
function goalTable(measured: AllMeasured): string {
  const { peers: _, ...others } = goals;
  const rows = Object.entries(others).flatMap(([measure, ofMeasure]) =>
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

interface Comparison {
  readonly work: string;
  readonly ours: string;
  readonly peer: string;
  readonly theirs: string;
  /** Our rate as a multiple of the peer's; absent for other figures. */
  readonly times?: string;
}

const dlt = `dlt ${versions.dlt}`;
const stripeSync = `stripe-sync-engine ${versions.stripeSyncEngine}`;

const comparisons: readonly Comparison[] = [
  {
    work: 'first load, documents/s',
    ours: 'backfillPerSecond',
    peer: dlt,
    theirs: 'dltPerSecond',
    times: 'backfillTimesDlt',
  },
  ...([512, 64] as const).map((level) => ({
    work: `events acknowledged/s, ${level} in flight`,
    ours: `acknowledged${level}PerSecond`,
    peer: stripeSync,
    theirs: `stripeSyncAcknowledged${level}PerSecond`,
    times: `acknowledged${level}TimesStripeSync`,
  })),
  {
    work: 'events applied to rows/s, 512 in flight',
    ours: 'appliedPerSecond',
    peer: stripeSync,
    theirs: 'stripeSyncAcknowledged512PerSecond',
    times: 'appliedTimesStripeSync',
  },
  ...([512, 64] as const).map((level) => ({
    work: `p99 of an answer, ${level} in flight, ms`,
    ours: `acknowledged${level}P99Ms`,
    peer: stripeSync,
    theirs: `stripeSyncAcknowledged${level}P99Ms`,
  })),
];

function peersTable(measured: AllMeasured): string[] {
  const { peers } = measured;
  if (peers === undefined) return ['Not measured yet: `npm run bench -- peers --keep`.'];
  const figureOf = (name: string | undefined) => {
    const figure = peers.figures[name ?? ''];
    return figure === undefined ? '' : describeFigure(figure);
  };
  const rows = comparisons.map(({ work, ours, peer, theirs, times }) => {
    const goal = goals.peers?.[times ?? ''];
    return [
      work,
      figureOf(ours),
      peer,
      figureOf(theirs),
      times === undefined ? '' : judgedFigure(measured, 'peers', times),
      goal === undefined ? '' : describeGoal(goal),
    ];
  });
  const head = ['Work', 'metersync', 'Peer', 'of the peer', 'Times', 'Goal'];
  const where = `On ${peers.machine}, ${peers.takenOn}, ${peers.size} size, in turn in one run.`;
  return [where, '', markdownTable(head, rows)];
}
