/**
 * The process of a service that costs next to nothing: it serves pages from memory, under a versioned address
 * as the service does, so that the figures show only the speed of what reads them.
 */
import { createHash, randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { serve } from './child.ts';
import type { Outgoing } from './load.ts';

export interface Recorded {
  readonly url: string;
  readonly companies: readonly string[];
  readonly documents: number;
  /** Bytes of all pages of documents. */
  readonly bytes: number;
}

export type CheapServiceCalls = ReturnType<typeof createCheapService>;

interface Sandbox {
  readonly apiUrl: string;
  readonly apiKey: string;
}

interface Document {
  readonly id: string;
  readonly created: string;
  readonly updated: string;
}

interface Listing {
  readonly documents: Document[];
  readonly hasNext: boolean;
}

/** Where a document stands in the listing of its company. */
interface Place {
  readonly companyId: string;
  readonly path: string;
  readonly at: number;
}

function createCheapService() {
  const bodies = new Map<string, string | Buffer>();
  const listings = new Map<string, Listing>();
  const places: Place[] = [];
  let changes = 0;
  const since = Date.now();
  return {
    /** Reads all documents of the sandbox once, and serves the same bytes. */
    record: async (sandbox: Sandbox): Promise<Recorded> => {
      const list = await read(sandbox, '/company');
      const companies = (JSON.parse(list) as { id: string }[]).map(({ id }) => id);
      bodies.set('/company?page=1', list);
      let bytes = 0;
      for (const companyId of companies) {
        for await (const { path, body, listing } of pagesOf(sandbox, 'document', companyId)) {
          bodies.set(path, Buffer.from(body));
          listings.set(path, listing);
          for (const [at] of listing.documents.entries()) places.push({ companyId, path, at });
          bytes += body.length;
        }
      }
      const url = await listen((path) => bodies.get(path));
      return { url, companies, documents: places.length, bytes };
    },

    /** Changes `updated` of recorded documents, one after the other through all companies. Returns their events. */
    change: (count: number): Outgoing[] => {
      const pages = new Set<string>();
      const events = Array.from({ length: count }, () => {
        const { companyId, path, at } = places[changes % places.length] as Place;
        // Each change is newer than the one before, and than the records of the sandbox.
        const updated = new Date(since + changes).toISOString().slice(0, -1);
        changes += 1;
        const { documents } = listings.get(path) as Listing;
        const document: Document = { ...(documents[at] as Document), updated };
        documents[at] = document;
        pages.add(path);
        bodies.set(`/document/${document.id}`, JSON.stringify(document));
        const { id, created } = document;
        const body = { eventType: 'document.updated.v2', id, company: { id: companyId }, created, updated };
        return { id: `msg_${randomUUID()}`, body: JSON.stringify(body) };
      });
      for (const path of pages) bodies.set(path, Buffer.from(JSON.stringify(listings.get(path))));
      return events;
    },

    /** Reads the documents and usage of one company, and serves copies with other ids for so many companies. */
    copy: async ({ companies: count, ...sandbox }: Sandbox & { companies: number }): Promise<Recorded> => {
      const list = await read(sandbox, '/company');
      const [company] = JSON.parse(list) as { id: string }[];
      if (company === undefined) throw new Error('the service has no company');
      const pages = new Map<string, Template>();
      let documents = 0;
      let bytes = 0;
      for (const resource of ['document', 'usage'] as const) {
        for await (const { path, body, listing } of pagesOf(sandbox, resource, company.id)) {
          pages.set(path.replace(company.id, ''), templateOf(body));
          documents += listing.documents?.length ?? 0;
          if (resource === 'document') bytes += body.length;
        }
      }
      const one = templateOf(JSON.stringify(company));
      const companies = Array.from({ length: count }, (_, number) => copyOf(one, number));
      const ids = companies.map((text) => (JSON.parse(text) as { id: string }).id);
      const numbers = new Map(ids.map((id, number) => [id, number]));
      const url = await listen((path) => {
        if (path.startsWith('/company')) return `[${companies.join(',')}]`;
        const [id = ''] = idPattern.exec(path) ?? [];
        const [number, page] = [numbers.get(id), pages.get(path.replace(id, ''))];
        return number === undefined || page === undefined ? undefined : copyOf(page, number);
      });
      return { url, companies: ids, documents: documents * count, bytes: bytes * count };
    },

    /** Makes and serves documents of some 600 B. */
    make: async (given: { companies: number; documents: number }): Promise<Recorded> => {
      const companies = Array.from({ length: given.companies }, (_, number) => companyOf(number));
      bodies.set('/company?page=1', JSON.stringify(companies));
      let bytes = 0;
      for (const [at, company] of companies.entries()) {
        for (const [path, body] of smallPages(company, at * given.documents, given.documents)) {
          bodies.set(path, body);
          bytes += body.length;
        }
      }
      const url = await listen((path) => bodies.get(path));
      const documents = given.companies * given.documents;
      return { url, companies: companies.map(({ id }) => id), documents, bytes };
    },
  };
}

async function read({ apiUrl, apiKey }: Sandbox, path: string): Promise<string> {
  const answer = await fetch(`${apiUrl}${path}`, { headers: { 'x-api-key': apiKey } });
  if (!answer.ok) throw new Error(`GET ${path}: ${answer.status}`);
  return await answer.text();
}

async function* pagesOf(sandbox: Sandbox, resource: 'document' | 'usage', companyId: string) {
  for (let page = 1; ; page++) {
    const path = `/${resource}/company/${companyId}?page=${page}`;
    const body = await read(sandbox, path);
    const listing = JSON.parse(body) as Listing;
    yield { path, body, listing };
    if (!listing.hasNext) return;
  }
}

async function listen(bodyOf: (path: string) => string | Buffer | undefined): Promise<string> {
  const server = createServer((request, response) => {
    const body = bodyOf((request.url ?? '').replace('/v2.2', ''));
    response.writeHead(body === undefined ? 404 : 200, {
      'content-type': 'application/json; charset=utf-8',
      'content-length': body === undefined ? 0 : Buffer.byteLength(body),
    });
    response.end(body);
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/v2.2`;
}

/** A text that is cut at its ids. Even places have text, and odd places have ids. */
type Template = readonly string[];

const idPattern = /([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})/;
const templateOf = (text: string): Template => text.split(idPattern);

/** Changes every id in the text by the number of the copy; equal ids stay equal within a copy. */
function copyOf(template: Template, number: number): string {
  // An odd factor gives each number its own bits, so no two copies share an id.
  const bits = Math.imul(number, 0x9e3779b1);
  let text = '';
  for (const [place, part] of template.entries()) {
    if (place % 2 === 0) text += part;
    else {
      const changed = (Number.parseInt(part.slice(0, 8), 16) ^ bits) >>> 0;
      text += changed.toString(16).padStart(8, '0') + part.slice(8);
    }
  }
  return text;
}

/** Documents of a page. */
const perPage = 100;

function* smallPages(
  company: ReturnType<typeof companyOf>,
  first: number,
  totalDocuments: number,
): Generator<[path: string, body: string]> {
  const totalPages = Math.ceil(totalDocuments / perPage);
  for (let page = 1; page <= totalPages; page++) {
    const from = (page - 1) * perPage;
    const documents = Array.from({ length: Math.min(perPage, totalDocuments - from) }, (_, n) =>
      documentOf(company, first + from + n),
    );
    const more = { hasNext: page < totalPages, hasPrevious: page > 1 };
    const body = { totalDocuments, perPage, totalPages, currentPage: page, ...more, documents };
    yield [`/document/company/${company.id}?page=${page}`, JSON.stringify(body)];
  }
}

/** Creates an id that depends only on the name. */
function idOf(name: string): string {
  const hex = createHash('md5').update(name).digest('hex');
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}

const companyOf = (number: number) => ({
  id: idOf(`company ${number}`),
  externalId: `C-${number}`,
  name: `Company ${number}`,
  publicId: idOf(`public ${number}`),
  sites: [{ id: idOf(`site ${number}`), name: 'Plant' }],
});

function documentOf({ sites: [site], ...company }: ReturnType<typeof companyOf>, number: number) {
  const at = (seconds: number) =>
    `${new Date(Date.UTC(2026, 0, 1) + (number + seconds) * 1000).toISOString().slice(0, -1)}042`;
  return {
    id: idOf(`document ${number}`),
    company,
    site,
    created: at(0),
    updated: at(30),
    accountNumber: `${1e9 + number}`,
    serviceType: 'ELECTRICITY',
    startDate: '2026-01-01',
    endDate: '2026-01-31',
    totalCharges: `${(number % 90_000) / 100}`,
    chargesUnits: 'USD',
    lineItems: [
      { description: 'Energy', quantity: number % 1_000, quantityUnits: 'kWh', totalCharge: '71.25' },
      { description: 'Delivery', totalCharge: '12.80' },
    ],
  };
}

serve(createCheapService());
