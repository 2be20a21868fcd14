import type { WorkflowHandle } from '@temporalio/client';
import { expect, test } from 'vitest';
import { startBackfill } from '../../app/backfill.ts';
import { createRandom, type Random } from '../../bench/world.ts';
import { workflowIds } from '../../contract/names.ts';
import type { AlarmName } from '../../health/findings.ts';
import { type Load, startLoad } from './load.ts';
import { seedOf } from './plan.ts';
import { type Rig, type RigOptions, startRig } from './rig.ts';
import { type Figures, startAll, type VerdictOptions, verdict } from './verdict.ts';

/** One row of the matrix of faults: what strikes which parts at which moment, and what has to hold afterwards. */
export interface Fault<Surroundings> {
  /** Its name in the list, such as C1. A fault of several rows has the same name in each. */
  readonly name: string;
  readonly title: string;
  /** Whether it runs with each seed of the run, because it depends on the moment. Otherwise only with the first. */
  readonly eachSeed?: boolean;
  readonly alarms?: Alarms;
  readonly rig?: RigOptions;
  /** Makes what the rig needs, runs `work` with more options for the rig, and removes it. */
  readonly around?: (work: (more: RigOptions, made: Surroundings) => Promise<Found>) => Promise<Found>;
  /** Work that is done on the new rig, before a backfill and the load. */
  readonly prepare?: (rig: Rig, made: Surroundings, seed: number) => Promise<unknown>;
  /** The backfill that has ended `before` the load, or runs `during` it; one that is `unjudged` may also fail. */
  readonly backfill: 'before' | 'during' | 'unjudged' | 'none';
  readonly load?: { readonly perSecond: number; readonly types?: readonly string[] } | 'none';
  /** How long the load lasts at least. It ends after the strike. */
  readonly loadSeconds?: number;
  /** Does the fault under load. Returns figures of what was done, except kills, and ids of its own events. */
  readonly strike: (striking: Striking<Surroundings>) => Promise<Struck | string | undefined>;
  readonly verdict?: VerdictOptions;
  /** What has to hold besides the verdict. A string that it returns is added to the figures of what was done. */
  readonly check?: (figures: Figures, rig: Rig, made: Surroundings, seed: number) => unknown;
}

export interface Striking<Surroundings = undefined> {
  readonly rig: Rig;
  readonly made: Surroundings;
  readonly seed: number;
  /** Depends on the seed and the fault. */
  readonly random: Random;
  readonly load: Load;
  /** The backfill that runs meanwhile. */
  readonly run: WorkflowHandle | undefined;
}

interface Struck {
  readonly injected?: string;
  /** Ids of events that the strike itself sent and that were answered with 2xx. */
  readonly alsoAcknowledged?: readonly string[];
}

/** The result of one run of a fault. */
export interface FaultReport {
  readonly fault: string;
  readonly title: string;
  readonly seed: number;
  readonly seconds: number;
  /** The rate of the service's events, per second, during the fault, unless it has no load. */
  readonly perSecond?: number;
  /** Figures of what was done, except kills. */
  readonly injected: string;
  readonly figures: Figures;
}

export type Found = Pick<FaultReport, 'injected' | 'figures' | 'perSecond'>;

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

/** Prints a line for the person who watches or repeats the run. */
export const say = (line: string): boolean => process.stdout.write(`${line}\n`);

/** Multiplies the default number of blows by FAULTS_TIMES, which may be a fraction, and rounds up. */
export const times = (byDefault: number): number =>
  Math.ceil(byDefault * Number(process.env.FAULTS_TIMES ?? 1));

/** Ends a run that hangs. A run that passes does not depend on this time. */
const timeout = times(1_800_000);

/** The rate of events that is requested, per second. About 200 are made if batches take long. */
export const eventsPerSecond = 220;

/** The load of a fault without load. */
const noLoad: Load = { end: async () => ({ events: 0, perSecond: 0 }) };

/** Registers a fault as a test for each of its seeds. FAULTS_SEED is the first seed, FAULTS_SEEDS their number. */
export function fault<Surroundings = undefined>(row: Fault<Surroundings>): void {
  const { name, title, alarms: { must = [], may = [] } = {} } = row;
  const first = Number(process.env.FAULTS_SEED ?? 1);
  const count = row.eachSeed ? Number(process.env.FAULTS_SEEDS ?? 1) : 1;
  const seeds = Array.from({ length: count }, (_, more) => first + more);
  test.for(seeds)(`${name} ${title}, seed %i`, { timeout }, async (seed, { task }) => {
    const startedAt = performance.now();
    const around = row.around ?? ((work) => work({}, undefined as Surroundings));
    const found = await around((more, made) => {
      const env = { ...row.rig?.env, ...more.env };
      return struck(row, seed, { ...row.rig, ...more, env }, made);
    });
    const seconds = Math.round((performance.now() - startedAt) / 1000);
    const raised = found.figures.alarms.map((alarm) => alarm.name);
    say(`${name}, seed ${seed}: alarms ${JSON.stringify(found.figures.alarms)}`);
    expect(raised).toEqual(expect.arrayContaining([...must]));
    const others = raised.filter((alarm) => ![...must, ...may, ...ofSlowMachines].includes(alarm));
    expect(others).toEqual([]);
    task.meta.fault = { fault: name, title, seed, seconds, ...found };
  });
}

/** Runs a fault on a rig of its own, and compares the service with the warehouse afterwards. */
async function struck<Surroundings>(
  row: Fault<Surroundings>,
  seed: number,
  options: RigOptions,
  made: Surroundings,
): Promise<Found> {
  const own = seedOf(seed, row.name);
  const rig = await startRig(options);
  let load = noLoad;
  try {
    await row.prepare?.(rig, made, seed);
    if (row.backfill === 'before') expect(await rig.backfill()).toBe('complete');
    if (row.load !== 'none')
      load = startLoad(rig.service, own, row.load?.perSecond ?? eventsPerSecond, row.load?.types);
    const runs = row.backfill === 'during' || row.backfill === 'unjudged';
    const run = runs
      ? rig.client.workflow.getHandle(workflowIds.backfill(await startBackfill(rig.client)))
      : undefined;
    const done = await row.strike({ rig, made, seed, random: createRandom(own), load, run });
    const { perSecond } = await load.end(row.loadSeconds);
    await startAll(rig);
    // A listing that changes in all of its passes makes the run suspect.
    if (row.backfill === 'during') expect(['complete', 'suspect']).toContain(await run?.result());
    const { injected = '', alsoAcknowledged = [] } =
      typeof done === 'string' ? { injected: done } : (done ?? {});
    const figures = await verdict(rig, { ...row.verdict, alsoAcknowledged });
    const more = await row.check?.(figures, rig, made, seed);
    const texts = [injected, typeof more === 'string' ? more : ''].filter((text) => text !== '');
    return { injected: texts.join('; '), figures, ...(row.load === 'none' ? {} : { perSecond }) };
  } finally {
    // The error of a strike says more than the end of the load.
    await load.end().catch(() => {});
    await rig.stop();
  }
}
