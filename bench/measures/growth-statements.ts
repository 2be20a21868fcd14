import { connectWarehouse, type Warehouse } from '../../db/connection/connect.ts';
import { exceptions } from '../../test/db/cost/exceptions.ts';
import { complaintsAbout } from '../../test/db/cost/judge.ts';
import {
  analyseAtRest,
  forgetStatistics,
  loadPlots,
  perPlot,
  prepareTables,
} from '../../test/db/cost/rows.ts';
import { everything } from '../../test/db/cost/work/everything.ts';
import type { Work } from '../../test/db/cost/work/work.ts';
import { connectExplained, type Ran } from '../../test/support/plans.ts';
import { loadWithoutIndexes } from '../load/without-indexes.ts';
import type { Bench, Figures, Measure } from '../measure.ts';

export const growthStatements: Measure = {
  name: 'growth-statements',
  about: 'whether statements touch as few blocks in a warehouse of 4 M events as in a small one',
  onlyByName: true,
  run: measureStatements,
};

/** Companies ("plots") are loaded in portions of this many, with one statement for each table. */
const plotsTogether = 1_000;
/** Length of a reported statement, in characters. */
const textMax = 160;
/** Number of the first plot on which no work is done. */
const firstPlotBeside = 10_001;

/** The statistics that Postgres has of a large warehouse: only of its first plots, of all, or none. */
const knowledge: readonly (readonly [string, (warehouse: Warehouse) => Promise<unknown>])[] = [
  ['analysed before it was loaded', async () => {}],
  ['analysed', ({ pool }) => pool.query('analyze')],
  ['never analysed', ({ db }) => forgetStatistics(db)],
];

/**
 * Measures the share of a deployment's statements that touch as few blocks in a large warehouse as in a small
 * one, as the cost test does (test/db/cost), but in a warehouse twenty times as large.
 */
async function measureStatements(bench: Bench): Promise<Figures> {
  const { growthPlots, growthEveryNthWork } = bench.size;
  const works = everything
    .filter(({ asksForAll }) => asksForAll === undefined)
    .filter((_, place) => place % growthEveryNthWork === 0);
  const small = bench.stack.asSuperuser(await bench.stack.warehouse());
  const large = bench.stack.asSuperuser(await bench.stack.warehouse());
  await withWarehouse(small, async ({ db }) => {
    await prepareTables(db);
    await loadPlots(db, 1, works.length);
  });
  const before: Ran[][] = [];
  // In small tables the planner rightly scans. Without scans, it uses the plan for large tables.
  for (const [place, work] of works.entries())
    before.push(await ranBy(small, work, place + 1, { enable_seqscan: 'off' }));
  await loadLarge(bench, large, works.length * knowledge.length, growthPlots);
  let cheap = 0;
  for (const [way, [known, learn]] of knowledge.entries()) {
    await withWarehouse(large, learn);
    for (const [place, work] of works.entries()) {
      // Each state of the statistics has its own plots, because work changes its plot.
      const plot = way * works.length + place + 1;
      const ran = await ranBy(large, work, plot, { random_page_cost: '4' });
      const said = complaintsAbout(before[place] ?? [], ran, work.rows).filter(
        ({ text }) => !isExcused(text),
      );
      if (said.length === 0) cheap += 1;
      for (const complaint of said)
        bench.say(`${known}: ${work.name}: ${complaint.said}: ${complaint.text.slice(0, textMax)}`);
    }
  }
  return { statementsAsCheap: cheap / (works.length * knowledge.length) };
}

const isExcused = (text: string): boolean => exceptions.some(({ statement }) => text.includes(statement));

async function loadLarge(bench: Bench, url: string, plotsOfWork: number, plotsBeside: number): Promise<void> {
  await withWarehouse(url, async ({ db }) => {
    await prepareTables(db);
    await loadPlots(db, 1, plotsOfWork);
    await analyseAtRest(db, 1, plotsOfWork);
    await loadWithoutIndexes(url, async () => {
      for (let loaded = 0; loaded < plotsBeside; loaded += plotsTogether)
        await loadPlots(db, firstPlotBeside + loaded, Math.min(plotsTogether, plotsBeside - loaded));
    });
  });
  const of = (each: number) => (each * plotsBeside).toLocaleString('en');
  bench.say(
    `statements beside ${of(perPlot.documents)} documents, ${of(perPlot.readings)} readings and ${of(perPlot.events)} events of which ${of(perPlot.pending)} wait`,
  );
}

/** Runs work on its plot. Returns the statements that Postgres ran. */
async function ranBy(
  url: string,
  work: Work,
  plot: number,
  settings: Readonly<Record<string, string>>,
): Promise<Ran[]> {
  const warehouse = connectExplained(url, settings);
  try {
    await work.prepare?.(warehouse, plot);
    return await warehouse.plansOf(() => work.run(warehouse, plot));
  } finally {
    await warehouse.close();
  }
}

async function withWarehouse<T>(url: string, work: (warehouse: Warehouse) => Promise<T>): Promise<T> {
  const warehouse = connectWarehouse({ url, timeZone: 'UTC', max: 1, onError: () => {} });
  try {
    return await work(warehouse);
  } finally {
    await warehouse.close();
  }
}
