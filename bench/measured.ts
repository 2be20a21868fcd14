import { readFileSync, writeFileSync } from 'node:fs';
import { cpus, totalmem } from 'node:os';
import { fileURLToPath } from 'node:url';
import type { Figures } from './measure.ts';
import type { Report } from './report.ts';
import type { SizeName } from './size.ts';

/** The latest kept result of a measure. */
export interface Measured {
  /** The kind of machine: cores and memory. */
  readonly machine: string;
  /** Size of the measure: the goals hold for `full`. */
  readonly size: Exclude<SizeName, 'tiny'>;
  /** The day, or the days if its parts were taken on different days. */
  readonly takenOn: string;
  readonly figures: Figures;
}

/** Results by measure, for docs/performance.md. */
export type AllMeasured = Readonly<Record<string, Measured>>;

const path = fileURLToPath(new URL('measured.json', import.meta.url));

export const readMeasured = (): AllMeasured => JSON.parse(readFileSync(path, 'utf8')) as AllMeasured;

/** Keeps a report. It replaces earlier results of the same measures. */
export function keepMeasured(report: Report, size: Measured['size']): void {
  const now = { machine: machine(), size, takenOn: new Date().toISOString().slice(0, 10) };
  const fresh = Object.entries(report).map(([measure, figures]) => [
    measure,
    { ...now, figures: rounded(figures) },
  ]);
  const all = { ...readMeasured(), ...Object.fromEntries(fresh) };
  const sorted = Object.fromEntries(Object.entries(all).toSorted(([a], [b]) => (a < b ? -1 : 1)));
  writeFileSync(path, `${JSON.stringify(sorted, null, 2)}\n`);
}

export function machine(): string {
  const gigabytes = Math.round(totalmem() / 2 ** 30);
  return `${cpus().length} cores (${cpus()[0]?.model.trim()}), ${gigabytes} GB of memory`;
}

/** Rounds to three digits. Measurements on a shared machine do not even repeat these. */
const rounded = (figures: Figures): Figures =>
  Object.fromEntries(Object.entries(figures).map(([name, figure]) => [name, Number(figure.toPrecision(3))]));
