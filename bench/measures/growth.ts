import type { EndpointCatalogue } from '../../contract/endpoints.ts';
import { connectWarehouse, type Warehouse } from '../../db/connection/connect.ts';
import { readStatus } from '../../db/read/status.ts';
import type { CheapServiceCalls, Recorded } from '../cheap-service.ts';
import { type Bench, type Figures, type Measure, median } from '../measure.ts';
import { type Generator, type Pipeline, runBackfill, startGenerator, startPipeline } from '../pipeline.ts';
import { startSandbox } from '../sandbox.ts';
import { withClient } from '../stack.ts';
import { untilReceived } from '../warehouse.ts';

export const growth: Measure = {
  name: 'growth',
  about: 'whether rates hold: documents of the last tenth of a first load, events while many wait',
  onlyByName: true,
  run: measureGrowth,
};

const inFlight = 512;
/** How many events are signed and held in memory before they are sent. */
const eventsTogether = 20_000;
/** Companies that are backfilled before anything is timed. */
const warmUpCompanies = 5;
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
  };
}

/** Makes a service of many companies. Each has copies of the documents of a company of the sandbox. */
async function copyDocuments(bench: Bench): Promise<Recorded> {
  const { growthCompanies, growthDocuments: documents } = bench.size;
  const sandbox = await startSandbox(bench, { companies: 1, documents, intervalDays: 0 });
  const { apiUrl, apiKey } = sandbox;
  const companies = growthCompanies + warmUpCompanies;
  const service = bench.child<CheapServiceCalls>('cheap-service.ts');
  const copied = await service.call('copy', { apiUrl, apiKey, companies });
  await sandbox.stop();
  return copied;
}

/** Loads all companies into a new warehouse, and times the first and the last tenth. */
async function measureDocuments(
  bench: Bench,
  { url, companies, documents, bytes }: Recorded,
  usage: 'with' | 'without',
  endpoints: Partial<EndpointCatalogue>,
): Promise<{ lastOfFirst: number; perSecond: number }> {
  const measured = companies.slice(warmUpCompanies);
  const count = (some: readonly string[]) => (some.length * documents) / companies.length;
  bench.say(
    `${count(measured).toLocaleString('en')} documents of ${Math.round(bytes / documents)} B, ${usage} a listing of usage`,
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
  await proveDocuments(pipeline, documents);
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
  const { beganAt } = await generator.send(pipeline, { count: events }, inFlight);
  const endedAt = await withClient(pipeline.databaseUrl, (client) => untilReceived(client, beganAt, events));
  return (events * 1000) / (endedAt - beganAt);
}

async function withWarehouse<T>(url: string, work: (warehouse: Warehouse) => Promise<T>): Promise<T> {
  const warehouse = connectWarehouse({ url, timeZone: 'UTC', max: 1, onError: () => {} });
  try {
    return await work(warehouse);
  } finally {
    await warehouse.close();
  }
}
