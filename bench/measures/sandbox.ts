import { Webhook } from 'standardwebhooks';
import type { LoadReport } from '../load/run.ts';
import { perSecond, startGenerator } from '../load/send.ts';
import type { Bench, Figures, Measure } from '../measure.ts';
import type { Child } from '../process/child.ts';
import type { AnsweringCalls, Delivery } from '../service/answering.ts';
import type { BarePagesCalls } from '../service/bare-pages.ts';
import { holdChanges, releaseHeld } from '../service/held.ts';
import type { PageReaderCalls } from '../service/page-reader.ts';
import { type BenchSandbox, startSandbox } from '../service/sandbox.ts';

export const sandbox: Measure = {
  name: 'sandbox',
  about: 'what the sandbox delivers and serves per second, against a bare load and a bare server',
  run: measureSandbox,
};

/** The sandbox's default number of deliveries in flight for an endpoint. */
const deliveriesInFlight = 16;
const readsInFlight = 32;
/** Documents of each company, which fill five pages. */
const documents = 500;
const intervalDays = 7;

async function measureSandbox(bench: Bench): Promise<Figures> {
  const size = { companies: bench.size.sandboxCompanies, documents, intervalDays };
  bench.say(`the sandbox makes ${size.companies} companies of ${documents} documents`);
  const service = await startSandbox(bench, size);
  const pages = await measurePages(bench, service);
  return { ...(await measureDeliveries(bench, service)), ...pages };
}

/** Releases a backlog at one moment. Then a simple load posts the same bodies, signed in advance. */
async function measureDeliveries(bench: Bench, service: BenchSandbox): Promise<Figures> {
  const generator = startGenerator(bench);
  const receiver = bench.child<AnsweringCalls>('service/answering.ts');
  const port = await receiver.call('listen', undefined);
  const { secret } = await service.ask<{ secret: string }>('POST', '/sandbox/endpoints', {
    url: `http://127.0.0.1:${port}/webhooks`,
  });
  const delivered: Pick<LoadReport, 'events' | 'seconds'>[] = [];
  const bare: LoadReport[] = [];
  const { rounds, sandboxChanges, warmUpEvents } = bench.size;
  for (let round = 0; round <= rounds; round++) {
    bench.say(round === 0 ? 'deliveries: warm-up' : `deliveries: round ${round} of ${rounds}`);
    const events = await holdChanges(service, round === 0 ? warmUpEvents : sandboxChanges);
    const seconds = await deliverHeld(service, receiver, events.length, secret);
    const report = await generator.send({ port, secret }, events, deliveriesInFlight);
    if (round === 0) continue;
    delivered.push({ events: events.length, seconds });
    bare.push(report);
  }
  const rate = perSecond(delivered);
  return {
    deliveriesOfBare: rate / perSecond(bare),
    deliveriesPerSecond: rate,
    barePostsPerSecond: perSecond(bare),
  };
}

/** Releases all held deliveries. Returns the seconds until the receiver has them. */
async function deliverHeld(
  service: BenchSandbox,
  receiver: Child<AnsweringCalls>,
  count: number,
  secret: string,
): Promise<number> {
  await receiver.call('expect', count);
  const began = Date.now();
  await releaseHeld(service);
  const { lastAt, last } = await receiver.call('arrived', undefined);
  proveSigned(last, secret);
  return (lastAt - began) / 1_000;
}

/** @throws Error if the delivery is not signed as the service's document says */
function proveSigned({ headers, body }: Delivery, secret: string): void {
  const names = ['webhook-id', 'webhook-timestamp', 'webhook-signature'];
  new Webhook(secret).verify(body, Object.fromEntries(names.map((name) => [name, String(headers[name])])));
}

/** Measures pages as a sync and its audit request them, against `node:http` with the same bytes in memory. */
async function measurePages(bench: Bench, service: BenchSandbox): Promise<Figures> {
  const { listings, documentPages } = await readAll(service);
  const reader = bench.child<PageReaderCalls>('service/page-reader.ts');
  const bareServer = bench.child<BarePagesCalls>('service/bare-pages.ts');
  const barePort = await bareServer.call('listen', listings);
  const read = (port: number, pages: ReadonlyMap<string, Uint8Array>, count: number) =>
    reader.call('read', {
      port,
      apiKey: service.apiKey,
      paths: [...pages.keys()],
      pages: count,
      inFlight: readsInFlight,
    });
  const port = Number(new URL(service.url).port);
  const firstReads = await measureFirstReads(service, listings, (pages) => read(port, pages, pages.size));
  const served: LoadReport[] = [];
  const bare: LoadReport[] = [];
  const ofDocuments: LoadReport[] = [];
  const { rounds, sandboxReads } = bench.size;
  await read(port, new Map([...listings, ...documentPages]), listings.size + documentPages.size);
  for (let round = 1; round <= rounds; round++) {
    bench.say(`pages: round ${round} of ${rounds}, ${listings.size + documentPages.size} different ones`);
    served.push(await read(port, listings, sandboxReads));
    bare.push(await read(barePort, listings, sandboxReads));
    ofDocuments.push(await read(port, documentPages, Math.ceil(sandboxReads / 4)));
  }
  return {
    pagesOfBare: perSecond(served) / perSecond(bare),
    pagesPerSecond: perSecond(served),
    barePagesPerSecond: perSecond(bare),
    firstReadsPerSecond: firstReads,
    documentPagesPerSecond: perSecond(ofDocuments),
  };
}

/** Measures pages right after a change of every company, so that each page is created again. */
async function measureFirstReads(
  service: BenchSandbox,
  listings: ReadonlyMap<string, Uint8Array>,
  readOnce: (pages: ReadonlyMap<string, Uint8Array>) => Promise<LoadReport>,
): Promise<number> {
  const changes = [...listings]
    .filter(([path]) => path.includes('/connection/company/'))
    .map(([, body]) => ({ type: 'touch', resource: 'connection', id: firstConnection(body) }));
  await service.ask('POST', '/sandbox/changes', { changes });
  return perSecond([await readOnce(listings)]);
}

function firstConnection(body: Uint8Array): string {
  const { connections } = JSON.parse(Buffer.from(body).toString('utf8')) as { connections: { id: string }[] };
  const [first] = connections;
  if (first === undefined) throw new Error('a company has no connection');
  return first.id;
}

/** Lists every page of connections, meters and intervals, and every page of documents, by path. */
async function readAll(service: BenchSandbox) {
  const base = new URL(service.apiUrl).pathname;
  const companies = await service.ask<{ id: string }[]>('GET', `${base}/company`);
  const listings = new Map<string, Uint8Array>();
  const documentPages = new Map<string, Uint8Array>();
  for (const { id } of companies) {
    await walk(service, `${base}/connection/company/${id}`, listings);
    for (const meter of await walk(service, `${base}/meter/company/${id}`, listings)) {
      await walk(service, `${base}/interval/meter/${meter}`, listings);
    }
    await walk(service, `${base}/document/company/${id}`, documentPages);
  }
  return { listings, documentPages };
}

/** Keeps each page of a list. Returns the ids of its records. */
async function walk(service: BenchSandbox, list: string, pages: Map<string, Uint8Array>): Promise<string[]> {
  const ids: string[] = [];
  for (let page = 1, more = true; more; page++) {
    const path = `${list}?page=${page}`;
    const text = await service.read(path);
    pages.set(path, Buffer.from(text));
    const { hasNext, ...envelope } = JSON.parse(text) as { hasNext: boolean };
    const items = Object.values(envelope).find(Array.isArray) as { id: string }[];
    ids.push(...items.map(({ id }) => id));
    more = hasNext;
  }
  return ids;
}
