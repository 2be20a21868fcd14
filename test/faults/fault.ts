import { expect, test } from 'vitest';
import type { AlarmName } from '../../health/findings.ts';
import type { Figures } from './verdict.ts';

/** The result of one run of a fault. */
export interface FaultReport {
  readonly fault: string;
  readonly title: string;
  readonly seed: number;
  readonly seconds: number;
  /** The rate of the service's events, per second, during the fault, unless the fault decides it. */
  readonly perSecond?: number;
  /** Figures of what was done, except kills. */
  readonly injected: string;
  readonly figures: Figures;
}

/**
 * A second is a minute only for the alarm rules. On a slow machine, in any fault, these may open because work
 * is late. The first two have to close, and the ledger shows whether an event stays missing.
 */
const ofSlowMachines: readonly AlarmName[] = ['EventsStalled', 'WorkflowsStuck', 'EventsMissing'];

/** The alarms of a fault. No other alarm may be raised, except `ofSlowMachines`. */
export interface Alarms {
  readonly must?: readonly AlarmName[];
  /** Alarms that may be raised, depending on when the fault strikes. */
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

/** Returns the seeds of this run. FAULTS_SEED is the first seed, FAULTS_SEEDS the number of seeds. */
export function seeds(): number[] {
  const first = Number(process.env.FAULTS_SEED ?? 1);
  return Array.from({ length: Number(process.env.FAULTS_SEEDS ?? 1) }, (_, more) => first + more);
}

/** Multiplies the default number of blows by FAULTS_TIMES. */
export const times = (byDefault: number): number => byDefault * Number(process.env.FAULTS_TIMES ?? 1);

/** Ends a run that hangs. A run that passes does not depend on this time. */
const timeout = times(1_800_000);

/** Registers a fault of the list as a test for each seed. */
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
