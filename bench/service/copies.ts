/**
 * The process of a cheap service of any number of companies: it reads the documents and usage of one company
 * of the sandbox once, and serves copies with different ids for each.
 */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { serve } from '../process/serve.ts';

export interface Copied {
  readonly url: string;
  readonly companies: readonly string[];
  /** Documents of each company. */
  readonly documents: number;
  /** Average size of a document on a page, in bytes. */
  readonly bytesOfDocument: number;
}

export type CopiesCalls = ReturnType<typeof createCopies>;

const listings = ['document', 'usage'] as const;

function createCopies() {
  return {
    copy: async (given: { apiUrl: string; apiKey: string; companies: number }): Promise<Copied> => {
      const read = async (path: string): Promise<string> => {
        const answer = await fetch(`${given.apiUrl}${path}`, { headers: { 'x-api-key': given.apiKey } });
        if (!answer.ok) throw new Error(`GET ${path}: ${answer.status}`);
        return await answer.text();
      };
      const [company] = JSON.parse(await read('/company')) as { id: string }[];
      if (company === undefined) throw new Error('the service has no company');
      const pages = new Map<string, Template>();
      let documents = 0;
      let bytes = 0;
      for (const listing of listings) {
        for (let page = 1, more = true; more; page++) {
          const text = await read(`/${listing}/company/${company.id}?page=${page}`);
          pages.set(`${listing} ${page}`, templateOf(text));
          const parsed = JSON.parse(text) as { documents?: unknown[]; hasNext: boolean };
          documents += parsed.documents?.length ?? 0;
          if (listing === 'document') bytes += text.length;
          more = parsed.hasNext;
        }
      }
      const one = templateOf(JSON.stringify(company));
      const numbers = Array.from({ length: given.companies }, (_, number) => number);
      const companies = numbers.map((number) => copyOf(one, number));
      const ids = companies.map((text) => (JSON.parse(text) as { id: string }).id);
      const url = await listen(`[${companies.join(',')}]`, new Map(ids.map((id, n) => [id, n])), pages);
      return { url, companies: ids, documents, bytesOfDocument: bytes / documents };
    },
  };
}

/** A text that is cut at its ids. Even places have text, and odd places have ids. */
type Template = readonly string[];

const idPattern = /([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})/;
const templateOf = (text: string): Template => text.split(idPattern);

/** An odd factor gives each number its own bits, so no two copies share an id. */
const bitsOf = (number: number): number => Math.imul(number, 0x9e3779b1);

/** Changes every id in the text by the number of the copy; equal ids stay equal within a copy. */
function copyOf(template: Template, number: number): string {
  const bits = bitsOf(number);
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

/** Serves the copies under a versioned address, as the service does. */
async function listen(
  companies: string,
  numbers: ReadonlyMap<string, number>,
  pages: ReadonlyMap<string, Template>,
): Promise<string> {
  const answer = (path: string): string | undefined => {
    if (path.startsWith('/v2.2/company')) return companies;
    const asked = /^\/v2\.2\/(document|usage)\/company\/([^?]+)\?page=(\d+)$/.exec(path);
    const number = numbers.get(asked?.[2] ?? '');
    const page = pages.get(`${asked?.[1]} ${asked?.[3]}`);
    return number === undefined || page === undefined ? undefined : copyOf(page, number);
  };
  const server = createServer((request, response) => {
    const page = answer(request.url ?? '');
    response.statusCode = page === undefined ? 404 : 200;
    response.setHeader('content-type', 'application/json');
    response.end(page ?? '{"detail": "not copied"}');
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/v2.2`;
}

serve(createCopies());
