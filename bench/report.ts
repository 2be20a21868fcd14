import { table } from '../cli/terminal.ts';
import { describeGoal, goals, isJudged, isReached } from './goals.ts';
import type { Figures } from './measure.ts';
import type { SizeName } from './size.ts';

/** Figures by measure, as `--json` writes them. */
export type Report = Record<string, Figures>;

/** Describes every figure in a table, with its goal and whether it is reached. */
export function describeReport(report: Report, size: SizeName): string {
  const rows = Object.entries(report).flatMap(([measure, figures]) =>
    Object.entries(figures).map(([name, figure]) => {
      const goal = isJudged(measure, size) ? goals[measure]?.[name] : undefined;
      const verdict = goal === undefined ? '' : isReached(goal, figure) ? 'reached' : 'missed';
      return [
        `${measure}.${name}`,
        describeFigure(figure),
        goal === undefined ? '' : describeGoal(goal),
        verdict,
      ];
    }),
  );
  return table(['figure', 'measured', 'goal', ''], rows).join('\n');
}

/** Shows three digits. Measurements on a shared machine do not even repeat these. */
export function describeFigure(figure: number): string {
  if (Math.abs(figure) >= 100) return Math.round(figure).toLocaleString('en');
  return String(Number(figure.toPrecision(3)));
}
