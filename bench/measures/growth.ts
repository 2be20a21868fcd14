import type { EndpointCatalogue } from '../../contract/endpoints.ts';
import { connectWarehouse, type Warehouse } from '../../db/connection/connect.ts';
import { readStatus } from '../../db/read/status.ts';
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
import { untilReceived } from '../load/journal.ts';
import { type Generator, startGenerator } from '../load/send.ts';
import { loadWithoutIndexes } from '../load/without-indexes.ts';
import { type Bench, type Figures, type Measure, median } from '../measure.ts';
import { type Pipeline, startPipeline } from '../pipeline/start.ts';
import { runBackfill } from '../service/backfill.ts';
import type { Copied, CopiesCalls } from '../service/copies.ts';
import { startSandbox } from '../service/sandbox.ts';
import { withClient } from '../stack.ts';

export const growth: Measure = {
  name: 'growth',
  about:
    'whether rates hold: documents of the last tenth of a first load, events while many wait, blocks of statements among 4 M events',
  onlyByName: true,
  run: measureGrowth,
};

const inFlight = 512;
/** How many events are signed and held in memory before they are sent. */
const eventsTogether = 20_000;
/** Companies that are backfilled before anything is timed. */
const warmUpCompanies = 5;
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

async function measureGrowth(bench: Bench): Promise<Figures> {
  const copied = await copyDocuments(bench);
  // Without usage endpoints, usage comes from the documents, so each page also writes usage.
  const noUsage = { usageData: null, documentUsage: null };
  const withListing = await measureDocuments(bench, copied, 'with', {});
  const withoutListing = await measureDocuments(bench, copied, 'without', noUsage);
  return {
    documentsLastOfFirst: Math.min(withListing.lastOfFirst, withoutListing.lastOfFirst),
    documentsWithListingLastOfFirst: withListing.lastOfFirst,
    documentsWithoutListingLastOfFirst: withoutListing.lastOfFirst,
    documentsWithListingPerSecond: withListing.perSecond,
    documentsWithoutListingPerSecond: withoutListing.perSecond,
    ...(await measureEvents(bench)),
    statementsAsCheap: await measureStatements(bench),
  };
}

/** Makes a service of many companies. Each has copies of the documents of a company of the sandbox. */
async function copyDocuments(bench: Bench): Promise<Copied> {
  const { growthCompanies, growthDocuments: documents } = bench.size;
  const sandbox = await startSandbox(bench, { companies: 1, documents, intervalDays: 0 });
  const { apiUrl, apiKey } = sandbox;
  const companies = growthCompanies + warmUpCompanies;
  const copied = await bench
    .child<CopiesCalls>('service/copies.ts')
    .call('copy', { apiUrl, apiKey, companies });
  await sandbox.stop();
  return copied;
}

/** Loads all companies into a new warehouse, and times the first and the last tenth. */
async function measureDocuments(
  bench: Bench,
  { url, companies, documents, bytesOfDocument }: Copied,
  usage: 'with' | 'without',
  endpoints: Partial<EndpointCatalogue>,
): Promise<{ lastOfFirst: number; perSecond: number }> {
  const measured = companies.slice(warmUpCompanies);
  const count = (some: readonly string[]) => some.length * documents;
  bench.say(
    `${count(measured).toLocaleString('en')} documents of ${Math.round(bytesOfDocument)} B, ${usage} a listing of usage`,
  );
  // Turns off the other endpoints, because the figure is about documents.
  const none = { connections: null, meters: null, intervals: null };
  const service = { url, apiKey: 'bench', endpoints: { ...none, ...endpoints } };
  const pipeline = await startPipeline(bench, { service, filled: false });
  await runBackfill(pipeline, companies.slice(0, warmUpCompanies));
  const tenth = Math.ceil(measured.length / 10);
  const parts = [measured.slice(0, tenth), measured.slice(tenth, -tenth), measured.slice(-tenth)];
  const seconds: number[] = [];
  for (const part of parts) {
    seconds.push(await runBackfill(pipeline, part));
    bench.say(`${count(part).toLocaleString('en')} documents in ${seconds.at(-1)?.toFixed(1)} s`);
  }
  await proveDocuments(pipeline, count(companies));
  await pipeline.process.stop();
  const [first = 0, between = 0, last = 0] = seconds;
  return { lastOfFirst: first / last, perSecond: count(measured) / (first + between + last) };
}

async function proveDocuments({ databaseUrl }: Pipeline, documents: number): Promise<void> {
  const { rows } = await withClient(databaseUrl, (client) =>
    client.query(`
      select
        (select count(*)::int from utility.documents where raw is not null) as documents,
        exists (select from utility.usage_data) as usage`),
  );
  if (rows[0].documents !== documents || !rows[0].usage)
    throw new Error(`${rows[0].documents} of ${documents} documents have rows; usage: ${rows[0].usage}`);
}

/** Measures events per second with and without many pending events. Catch-ups are off. */
async function measureEvents(bench: Bench): Promise<Figures> {
  const { rounds, growthWaiting, growthEvents, warmUpEvents } = bench.size;
  const generator = startGenerator(bench);
  const crowded = await startPipeline(bench);
  await letWait(bench, generator, crowded, growthWaiting);
  const many: number[] = [];
  const none: number[] = [];
  for (let round = 1; round <= rounds; round++) {
    const empty = await startPipeline(bench);
    await rateOf(generator, empty, warmUpEvents);
    await rateOf(generator, crowded, warmUpEvents);
    none.push(await rateOf(generator, empty, growthEvents));
    many.push(await rateOf(generator, crowded, growthEvents));
    bench.say(
      `round ${round} of ${rounds}: ${none.at(-1)?.toFixed(0)} events/s where none wait, ${many.at(-1)?.toFixed(0)} where many do`,
    );
    await empty.process.stop();
  }
  return {
    eventsWaitingOfNone: median(many.map((rate, round) => rate / (none[round] ?? Number.NaN))),
    eventsWaitingPerSecond: median(many),
    eventsPerSecond: median(none),
  };
}

/** Sends events of new documents and of readings, which supersede none, until this many are pending. */
async function letWait(
  bench: Bench,
  generator: Generator,
  pipeline: Pipeline,
  wanted: number,
): Promise<void> {
  for (let waiting = 0; waiting < wanted; ) {
    const count = Math.min(eventsTogether, wanted - waiting);
    const { beganAt } = await generator.send(
      pipeline,
      { count, changes: ['createDocument', 'syncIntervals'] },
      inFlight,
    );
    await withClient(pipeline.databaseUrl, (client) => untilReceived(client, beganAt, count));
    const before = waiting;
    waiting = await countWaiting(pipeline);
    if (waiting <= before) throw new Error(`${waiting} events wait, and no more do after ${count} others`);
    bench.say(`${waiting.toLocaleString('en')} of ${wanted.toLocaleString('en')} events wait`);
  }
}

const countWaiting = ({ databaseUrl }: Pipeline): Promise<number> =>
  withWarehouse(databaseUrl, async ({ db }) => (await readStatus(db)).events.pending);

/** Returns the events per second from the first byte sent to the last event in the journal. */
async function rateOf(generator: Generator, pipeline: Pipeline, events: number): Promise<number> {
  const { beganAt } = await generator.send(pipeline, events, inFlight);
  const endedAt = await withClient(pipeline.databaseUrl, (client) => untilReceived(client, beganAt, events));
  return (events * 1000) / (endedAt - beganAt);
}

/**
 * Measures the share of a deployment's statements that touch as few blocks in a large warehouse as in a small
 * one, as the cost test does (test/db/cost), but in a warehouse twenty times as large.
 */
async function measureStatements(bench: Bench): Promise<number> {
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
  return cheap / (works.length * knowledge.length);
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
