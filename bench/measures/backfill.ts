import type { CheapServiceCalls, Recorded } from '../cheap-service.ts';
import type { FetchOnlyCalls } from '../fetch-only.ts';
import type { Outgoing } from '../load.ts';
import { type Bench, type Figures, type Measure, median, medians } from '../measure.ts';
import { type Pipeline, runBackfill, startPipeline } from '../pipeline.ts';
import { startSandbox } from '../sandbox.ts';
import { withClient } from '../stack.ts';
import { bytesOnDisk } from '../warehouse.ts';

export const backfill: Measure = {
  name: 'backfill',
  about:
    'documents into rows per second through the real workflows, against fetching and parsing the same pages',
  run: measureBackfill,
};

/** Companies that are backfilled before the timed run. */
const warmUpCompanies = 5;

const apiKey = 'bench';
/** Turns off all other endpoints, because the figures are about documents. */
const endpoints = { connections: null, meters: null, usageData: null, intervals: null };

/** Documents of each small company. */
const documentsOfSmall = 5;

async function measureBackfill(bench: Bench): Promise<Figures> {
  const large = await measureDocuments(bench);
  return { ...large, companiesPerSecond: await measureCompanies(bench) };
}

async function measureDocuments(bench: Bench): Promise<Figures> {
  const { backfillCompanies, backfillDocuments } = bench.size;
  const recorded = await record(bench, backfillCompanies, backfillDocuments);
  const service = { url: recorded.url, apiKey };
  const fetcher = bench.child<FetchOnlyCalls>('fetch-only.ts');
  const fetchAll = async (): Promise<number> => {
    const { documents, seconds } = await fetcher.call('fetch', service);
    if (documents !== recorded.documents)
      throw new Error(`fetched ${documents} of ${recorded.documents} documents`);
    return documents / seconds;
  };
  await fetchAll();
  const rounds: Figures[] = [];
  for (let round = 1; round <= bench.size.rounds; round += 1) {
    bench.say(
      `round ${round} of ${bench.size.rounds}: ${recorded.documents.toLocaleString('en')} documents of ${recorded.companies.length} companies, served from memory, then again with nothing changed`,
    );
    rounds.push(await loadInTurn(bench, recorded, fetchAll));
  }
  return medians(rounds);
}

/** Loads an empty warehouse between two reads of the same pages, because the speed of the machine drifts. */
async function loadInTurn(
  bench: Bench,
  recorded: Recorded,
  fetchAll: () => Promise<number>,
): Promise<Figures> {
  const pipeline = await startWarm(bench, recorded);
  const before = await fetchAll();
  const seconds = await runBackfill(pipeline);
  const after = await fetchAll();
  await proveRows(pipeline.databaseUrl, recorded.documents);
  const bytes = await withClient(pipeline.databaseUrl, (client) => bytesOnDisk(client, 'utility.'));
  const secondsAgain = await runBackfill(pipeline);
  await pipeline.process.stop();
  const rate = recorded.documents / seconds;
  const fetchOnly = (before + after) / 2;
  return {
    ofFetchOnly: rate / fetchOnly,
    perSecond: rate,
    fetchOnlyPerSecond: fetchOnly,
    megabytesPerSecond: recorded.bytes / 1e6 / seconds,
    unchangedTimesFirst: seconds / secondsAgain,
    unchangedPerSecond: recorded.documents / secondsAgain,
    bytesOnDiskPerDocument: bytes / recorded.documents,
  };
}

/** Measures companies of a few documents, to show what a company itself costs. */
async function measureCompanies(bench: Bench): Promise<number> {
  const recorded = await record(bench, bench.size.backfillSmallCompanies, documentsOfSmall);
  const rates: number[] = [];
  for (let round = 0; round < bench.size.rounds; round += 1) {
    const pipeline = await startWarm(bench, recorded);
    const seconds = await runBackfill(pipeline);
    await proveRows(pipeline.databaseUrl, recorded.documents);
    await pipeline.process.stop();
    rates.push(recorded.companies.length / seconds);
  }
  return median(rates);
}

/** A server that costs next to nothing, and serves what was recorded. */
interface CheapService extends Recorded {
  /** Changes documents, and returns their events. */
  change(count: number): Promise<Outgoing[]>;
}

/** Records the pages of the sandbox, for a server that costs next to nothing. */
export async function record(bench: Bench, companies: number, documents: number): Promise<CheapService> {
  bench.say(`the sandbox makes ${companies} companies of ${documents} documents; their pages are recorded`);
  const sandbox = await startSandbox(bench, { companies, documents, intervalDays: 0 });
  const pages = bench.child<CheapServiceCalls>('cheap-service.ts');
  const { apiUrl, apiKey } = sandbox;
  const recorded = await pages.call('record', { apiUrl, apiKey });
  await sandbox.stop();
  return { ...recorded, change: (count) => pages.call('change', count) };
}

/** Starts a pipeline that reads some companies to warm up, and removes their rows. */
export async function startWarm(bench: Bench, { url, companies }: Recorded): Promise<Pipeline> {
  const pipeline = await startPipeline(bench, { service: { url, apiKey, endpoints }, filled: false });
  await runBackfill(pipeline, companies.slice(0, warmUpCompanies));
  await withClient(pipeline.databaseUrl, (client) => client.query('truncate utility.documents'));
  return pipeline;
}

export async function proveRows(databaseUrl: string, documents: number): Promise<void> {
  const rows = await withClient(databaseUrl, (client) =>
    client.query('select count(*)::int as count from utility.documents where raw is not null'),
  );
  if (rows.rows[0].count !== documents)
    throw new Error(`${rows.rows[0].count} of ${documents} documents have rows`);
}
