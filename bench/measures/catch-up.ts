import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import { MockActivityEnvironment } from '@temporalio/testing';
import { DefaultLogger } from '@temporalio/worker';
import { pino } from 'pino';
import type { ActivityDependencies } from '../../activities/dependencies.ts';
import { createNotifier } from '../../activities/notifier.ts';
import { catchUpDocuments } from '../../activities/sweep/documents.ts';
import { activitySettings, readSettings } from '../../app/settings/settings.ts';
import { defaultEndpoints } from '../../contract/endpoints.ts';
import { connectWarehouse } from '../../db/connection/connect.ts';
import { recordEvents } from '../../db/events/record-events.ts';
import { createFieldCatalogue } from '../../db/fields/field-catalogue.ts';
import { createServiceClient } from '../../service/client.ts';
import { type Bench, type Figures, type Measure, median } from '../measure.ts';

/** Lengths of the listings, in pages. */
const lengths = [1, 10, 100, 1_000] as const;
const perPage = 100;

export const catchUp: Measure = {
  name: 'catch-up',
  about:
    'requests for one document of a service that has listings only: a fresh one, and a changed one, by pages',
  run: measureCatchUp,
};

interface Listing {
  readonly companyId: string;
  readonly pages: number;
}

const documentId = (at: number): string => `00000000-0000-4000-8000-${String(at).padStart(12, '0')}`;
/** Documents are listed oldest first, so the newest is at the end of the listing. */
const createdAt = (at: number): string => new Date(Date.UTC(2020, 0, 1) + at * 60_000).toISOString();

async function measureCatchUp(bench: Bench): Promise<Figures> {
  const url = await bench.stack.warehouse();
  const warehouse = connectWarehouse({ url, timeZone: 'UTC', max: 4, onError: () => {} });
  bench.atEnd(() => warehouse.close());
  const service = await startListing(bench);
  const log = pino({ level: 'silent' });
  const none = { companies: null, meters: null, usageData: null, document: null, documentUsage: null };
  const client = createServiceClient({
    baseUrl: service.url,
    apiKey: 'bench',
    endpoints: { ...defaultEndpoints, ...none },
    random: Math.random,
    log,
    clock: { now: () => Date.now(), sleep: async (ms) => await wait(ms) },
  });
  bench.atEnd(() => client.close());
  const catalogue = createFieldCatalogue({ db: warehouse.db, onError: () => {} });
  bench.atEnd(() => catalogue.close());
  const unasked = { away: 'nobody asks', todo: 'Nothing.' };
  const deps: ActivityDependencies = {
    ...activitySettings(readSettings({})),
    warehouse,
    catchingUp: warehouse,
    checks: warehouse,
    watching: warehouse,
    service: client,
    catalogue,
    apiVersion: 'v2.2',
    log,
    startSweep: async () => {},
    backfillFirst: async () => {},
    howEnded: async () => 'completed',
    readHealth: async () => ({ warehouse: unasked, temporal: unasked, schema: null }),
    notifier: createNotifier({ target: undefined, now: Date.now }),
    wallClock: Date.now,
    now: () => performance.now(),
  };
  /** Counts the requests of a catch-up for one event. */
  const requestsFor = async (pages: number, at: number): Promise<number> => {
    const listing = { companyId: randomUUID(), pages };
    service.show(listing);
    await recordEvents(warehouse.db, [eventOf(listing, at)]);
    const environment = new MockActivityEnvironment({}, { logger: new DefaultLogger('ERROR') });
    await environment.run(() => catchUpDocuments(deps, listing.companyId, { probe: 0, walks: false }));
    const { rows } = await warehouse.pool.query(
      'select outcome from metersync.events where company_id = $1',
      [listing.companyId],
    );
    if (rows[0]?.outcome !== 'applied') throw new Error(`document ${at} of ${pages} pages was not found`);
    await warehouse.pool.query(
      'truncate utility.documents, utility.usage_data, metersync.journal, metersync.event_payloads',
    );
    return service.requests();
  };
  bench.say(`listings of ${lengths.join(', ')} pages of ${perPage} documents, oldest first`);
  const figures: Record<string, number> = {};
  for (const pages of lengths) {
    figures[`fresh${pages}`] = await requestsFor(pages, pages * perPage - 1);
    const changed: number[] = [];
    const { catchUpChanged } = bench.size;
    for (let n = 1; n <= catchUpChanged; n++) {
      const at = Math.floor((n * pages * perPage) / (catchUpChanged + 1));
      changed.push(await requestsFor(pages, at));
    }
    figures[`changed${pages}`] = median(changed);
  }
  return figures;
}

function eventOf({ companyId }: Listing, at: number) {
  const times = { created: createdAt(at), updated: createdAt(at) };
  const event = {
    eventType: 'document.updated.v2',
    id: documentId(at),
    company: { id: companyId },
    ...times,
  };
  const receivedAt = new Date().toISOString();
  return { id: randomUUID(), timestamp: 0, receivedAt, body: JSON.stringify(event) };
}

/** Starts a service with one listing, whose pages are made on request. */
async function startListing(bench: Bench) {
  let served: Listing = { companyId: '', pages: 1 };
  let requests = 0;
  const server = createServer((request, response) => {
    requests += 1;
    const asked = Number(new URL(request.url ?? '', 'http://listing').searchParams.get('page') ?? 1);
    const page = Math.min(asked, served.pages);
    const documents = Array.from({ length: perPage }, (_, n) => {
      const at = (page - 1) * perPage + n;
      return {
        id: documentId(at),
        company: served.companyId,
        created: createdAt(at),
        updated: createdAt(at),
      };
    });
    response.setHeader('content-type', 'application/json');
    response.end(
      JSON.stringify({
        totalDocuments: served.pages * perPage,
        perPage,
        totalPages: served.pages,
        currentPage: page,
        hasNext: page < served.pages,
        hasPrevious: page > 1,
        documents,
      }),
    );
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  bench.atEnd(async () => {
    server.closeAllConnections();
    await new Promise<void>((done) => server.close(() => done()));
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v2.2`,
    show: (listing: Listing): void => {
      served = listing;
      requests = 0;
    },
    requests: (): number => requests,
  };
}
