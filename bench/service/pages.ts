/**
 * The process of a cheap service: it reads the documents of the sandbox once and serves the same bytes from
 * memory, so that the figures show only the speed of a backfill, or of reading changed documents again.
 */
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Outgoing } from '../load/signed.ts';
import { serve } from '../process/serve.ts';

export interface Recorded {
  readonly url: string;
  readonly companies: readonly string[];
  readonly documents: number;
  readonly bytes: number;
}

export type PagesCalls = ReturnType<typeof createPages>;

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

function createPages() {
  const bodies = new Map<string, Buffer>();
  const listings = new Map<string, Listing>();
  const places: Place[] = [];
  let changes = 0;
  const since = Date.now();
  return {
    record: async (service: { apiUrl: string; apiKey: string }): Promise<Recorded> => {
      const read = async (path: string): Promise<{ body: Buffer; parsed: Listing }> => {
        const answer = await fetch(`${service.apiUrl}${path}`, { headers: { 'x-api-key': service.apiKey } });
        if (!answer.ok) throw new Error(`GET ${path}: ${answer.status}`);
        const body = Buffer.from(await answer.arrayBuffer());
        return { body, parsed: JSON.parse(body.toString('utf8')) as Listing };
      };
      const list = await read('/company');
      const companies = (list.parsed as unknown as { id: string }[]).map(({ id }) => id);
      bodies.set('/company?page=1', list.body);
      let bytes = 0;
      for (const companyId of companies) {
        for (let page = 1, more = true; more; page++) {
          const path = `/document/company/${companyId}?page=${page}`;
          const { body, parsed } = await read(path);
          bodies.set(path, body);
          listings.set(path, parsed);
          for (const [at] of parsed.documents.entries()) places.push({ companyId, path, at });
          bytes += body.length;
          more = parsed.hasNext;
        }
      }
      return { url: await listen(bodies), companies, documents: places.length, bytes };
    },
    /** Changes `updated` of documents, one after the other through all companies. Returns their events. */
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
        bodies.set(`/document/${document.id}`, Buffer.from(JSON.stringify(document)));
        const { id, created } = document;
        const body = { eventType: 'document.updated.v2', id, company: { id: companyId }, created, updated };
        return { id: `msg_${randomUUID()}`, body: JSON.stringify(body) };
      });
      for (const path of pages) bodies.set(path, Buffer.from(JSON.stringify(listings.get(path))));
      return events;
    },
  };
}

/** Serves the bodies under a versioned address, as the service does. */
async function listen(bodies: ReadonlyMap<string, Buffer>): Promise<string> {
  const server = createServer((request, response) => {
    const body = bodies.get((request.url ?? '').replace('/v2.2', ''));
    response.statusCode = body === undefined ? 404 : 200;
    response.setHeader('content-type', 'application/json');
    response.end(body ?? '{"detail": "not recorded"}');
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/v2.2`;
}

serve(createPages());
