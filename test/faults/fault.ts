import { expect, test } from 'vitest';
import type { AlarmName } from '../../health/findings.ts';
import type { Figures } from './verdict.ts';

/** The result of one run of a fault, for docs/reliability.md. */
export interface FaultReport {
  readonly fault: string;
  readonly title: string;
  readonly seed: number;
  readonly seconds: number;
  /** Events a second that the service made during the fault; absent if the fault decides that itself. */
  readonly perSecond?: number;
  /** Figures of what was done, beside kills; what the page says of the fault is left out. */
  readonly injected: string;
  readonly figures: Figures;
}

/**
 * A second represents a minute of the alarm rules, and of nothing else. On a slow machine work is due for 15
 * s, tasks of workflows exceed their 10 s, and deliveries are minutes late, in any fault. The first two
 * alarms have to close, and the ledger shows whether an event stays missing.
 */
const ofSlowMachines: readonly AlarmName[] = ['EventsStalled', 'WorkflowsStuck', 'EventsMissing'];

/** The alarms of a fault; no other may be raised, but `ofSlowMachines`. */
export interface Alarms {
  readonly must?: readonly AlarmName[];
  /** Depend on when the fault strikes. */
  readonly may?: readonly AlarmName[];
}

declare module 'vitest' {
  interface TaskMeta {
    fault?: FaultReport;
  }
}

export type Found = Pick<FaultReport, 'injected' | 'figures' | 'perSecond'>;

/** Prints a line for the person who watches or repeats the run. */
export const say = (line: string): boolean => process.stdout.write(`${line}\n`);

/** Returns the seeds of this run: FAULTS_SEED is the first, FAULTS_SEEDS their number. */
export function seeds(): number[] {
  const first = Number(process.env.FAULTS_SEED ?? 1);
  return Array.from({ length: Number(process.env.FAULTS_SEEDS ?? 1) }, (_, more) => first + more);
}

/** Multiplies the default number of blows by FAULTS_TIMES. */
export const times = (byDefault: number): number => byDefault * Number(process.env.FAULTS_TIMES ?? 1);

/** Ends a hung run; no passing run depends on it. */
const timeout = 1_800_000;

/** Registers a fault of the list, once for each seed. */
export function fault(
  name: string,
  title: string,
  chosen: readonly number[],
  alarms: Alarms,
  inject: (seed: number) => Promise<Found>,
): void {
  test.for(chosen)(`${name} ${title}, seed %i`, { timeout }, async (seed, { task }) => {
    const startedAt = performance.now();
    const found = await inject(seed);
    const seconds = Math.round((performance.now() - startedAt) / 1000);
    const { must = [], may = [] } = alarms;
    const raised = found.figures.alarms.map((alarm) => alarm.name);
    say(`${name}, seed ${seed}: alarms ${JSON.stringify(found.figures.alarms)}`);
    expect(raised).toEqual(expect.arrayContaining([...must]));
    const others = raised.filter((alarm) => ![...must, ...may, ...ofSlowMachines].includes(alarm));
    expect(others).toEqual([]);
    task.meta.fault = { fault: name, title, seed, seconds, ...found };
  });
}
