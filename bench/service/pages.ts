/**
 * The process of a cheap service: it reads the documents of the sandbox once and serves the same bytes from
 * memory, so that the figures show only the speed of a backfill.
 */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { serve } from '../process/serve.ts';

export interface Recorded {
  readonly url: string;
  readonly companies: readonly string[];
  readonly documents: number;
  readonly bytes: number;
}

export type PagesCalls = ReturnType<typeof createPages>;

function createPages() {
  const pages = new Map<string, Buffer>();
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
      pages.set('/company?page=1', list.body);
      let documents = 0;
      let bytes = 0;
      for (const id of companies) {
        for (let page = 1, more = true; more; page++) {
          const path = `/document/company/${id}?page=${page}`;
          const { body, parsed } = await read(path);
          pages.set(path, body);
          documents += parsed.documents.length;
          bytes += body.length;
          more = parsed.hasNext;
        }
      }
      return { url: await listen(pages), companies, documents, bytes };
    },
  };
}

interface Listing {
  readonly documents: readonly unknown[];
  readonly hasNext: boolean;
}

/** Serves the pages under a versioned address, as the service does. */
async function listen(pages: ReadonlyMap<string, Buffer>): Promise<string> {
  const server = createServer((request, response) => {
    const page = pages.get((request.url ?? '').replace('/v2.2', ''));
    response.statusCode = page === undefined ? 404 : 200;
    response.setHeader('content-type', 'application/json');
    response.end(page ?? '{"detail": "not recorded"}');
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/v2.2`;
}

serve(createPages());
