import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { itemTexts } from '../../db/records/page.ts';
import { type Asked, type Reply, ScriptedServer } from '../service/scripted-server.ts';
import { hostileJson, hostileVariant } from './hostile-json.ts';

/** Hostile records on each page of a listing. */
const perPage = 6;

export interface Hostility {
  readonly seed: number;
  /** Documents that only the proxy has, by id, each with hostile JSON in one place. */
  readonly documents: ReadonlyMap<string, object>;
}

/** A proxy between a worker and the service that adds hostile records. */
export interface HostileService {
  /** Its SERVICE_URL. */
  readonly url: string;
  /** Number of pages with hostile records, and of documents that only the proxy has. */
  readonly hostile: { readonly pages: number; readonly documents: number };
  /** Begins to add hostile records to the genuine records. */
  arm(how: Hostility): void;
  /** Begins to pass everything on unchanged. */
  disarm(): void;
  stop(): Promise<void>;
}

/** Starts a proxy before the service's API at the base URL `apiUrl`. */
export async function startHostileService(apiUrl: string): Promise<HostileService> {
  const { origin } = new URL(apiUrl);
  const hostile = { pages: 0, documents: 0 };
  let armed: Armed | undefined;
  const server = await ScriptedServer.start(async ({ path, query, headers }: Asked): Promise<Reply> => {
    const invented = armed?.answer(path);
    if (invented !== undefined) {
      hostile.documents += 1;
      return { body: invented };
    }
    const answer = await fetch(`${origin}${path}?${query}`, {
      headers: { 'x-api-key': String(headers['x-api-key']) },
    });
    const body = await answer.text();
    const { status } = answer;
    const mixed = status === 200 ? armed?.mixed(path, body) : undefined;
    if (mixed !== undefined) hostile.pages += 1;
    return { status, body: mixed ?? body, headers: passedOn(answer.headers) };
  });
  return {
    url: server.url,
    hostile,
    arm: (how) => {
      armed = new Armed(how);
    },
    disarm: () => {
      armed = undefined;
    },
    stop: () => server.stop(),
  };
}

/** Copies headers, except those about the connection and the length and encoding of the body. */
function passedOn(headers: Headers): Record<string, string> {
  const own = new Set([
    'connection',
    'keep-alive',
    'transfer-encoding',
    'content-length',
    'content-encoding',
    'date',
  ]);
  return Object.fromEntries([...headers].filter(([name]) => !own.has(name)));
}

type Json = Readonly<Record<string, unknown>>;

class Armed {
  readonly #seed: number;
  readonly #documents: Hostility['documents'];
  /** Hostile records by place, so that a repeated page is the same. */
  readonly #shown = new Map<string, readonly string[]>();

  constructor({ seed, documents }: Hostility) {
    this.#seed = seed;
    this.#documents = documents;
  }

  /** Answers with a document that only the proxy has, or its usage. */
  answer(path: string): string | undefined {
    const [, , resource = '', scope = '', id = ''] = path.split('/');
    const document = this.#documents.get(resource === 'document' ? scope : id);
    if (document === undefined) return undefined;
    if (resource !== 'document') {
      const envelope = { totalUsageData: 0, totalPages: 1, currentPage: 1, hasNext: false, usageData: [] };
      return JSON.stringify(envelope);
    }
    const kept = ['id', 'company', 'created', 'updated'];
    const [text] = this.#once(path, () => this.#sample(path, hostileVariant(document, kept), 1));
    return text;
  }

  /** Adds hostile records to a page; undefined if the body is not a page of a listing, or is an empty page. */
  mixed(path: string, body: string): string | undefined {
    // A record by itself is not a listing, although it has arrays.
    if (/^\/[^/]+\/document\/(?!company\/)/.test(path)) return undefined;
    const parsed: unknown = JSON.parse(body);
    const envelope = Array.isArray(parsed) ? undefined : (parsed as Json);
    const key = envelope && Object.keys(envelope).find((name) => Array.isArray(envelope[name]));
    if (envelope !== undefined && key === undefined) return undefined;
    const genuine = itemTexts({ body, itemsKey: key ?? null });
    const [first] = genuine;
    if (first === undefined) return undefined;
    const place = `${path}#${envelope?.currentPage ?? 1}`;
    const more = this.#once(place, () => this.#hostileRecords(path, place, JSON.parse(first) as Json));
    // Hostile records come first and last, with the genuine records in between.
    const half = more.length / 2;
    const items = [...more.slice(0, half), ...genuine, ...more.slice(half)].join(',');
    if (envelope === undefined || key === undefined) return `[${items}]`;
    const { [key]: _, ...around } = envelope;
    const pages = Number(envelope.totalPages ?? 1);
    const total = Object.keys(around).find((name) => /^total/.test(name) && name !== 'totalPages');
    // Each page gets the same number of hostile records, and the total counts the records of all pages.
    const raised = total === undefined ? {} : { [total]: Number(around[total]) + pages * perPage };
    return `${JSON.stringify({ ...around, ...raised }).slice(0, -1)},${JSON.stringify(key)}:[${items}]}`;
  }

  #once(place: string, make: () => readonly string[]): readonly string[] {
    const shown = this.#shown.get(place) ?? make();
    this.#shown.set(place, shown);
    return shown;
  }

  /**
   * Makes hostile records. In some listings they may have no id or an invalid id, so that no pass proves the
   * listing complete. In the other listings each record has its own id. This includes a document's usage:
   * there a row without an id could be any row, and the document's events would rightly wait.
   */
  #hostileRecords(path: string, place: string, record: Json): string[] {
    const identified = path.includes('/usage/document/') || this.#number(path) % 2 === 0;
    return Array.from({ length: perPage }, (_, at) => {
      const own = this.#renamed(`${place}/${at}`, record);
      const variant = hostileVariant(own, 'id' in own ? ['id'] : []);
      const { id, ...without } = own;
      const withoutId = hostileVariant(without);
      const wrongId = hostileJson.map((json) => `{"id":${json},${JSON.stringify(without).slice(1)}`);
      const any = fc.oneof({ weight: 3, arbitrary: variant }, hostileJson, withoutId, wrongId);
      return this.#sample(`${place}/${at}`, identified ? variant : any, 1)[0] as string;
    });
  }

  /** Gives a record and the records in its lists their own ids; a reading is identified by its time. */
  #renamed(place: string, record: Json): Json {
    const renamed = Object.entries(record).map(([key, value]) => {
      const at = `${place}/${key}`;
      if (key === 'id') return [key, this.#uuid(at)];
      if (Array.isArray(value)) return [key, value.map((one, n) => this.#renamedIn(`${at}/${n}`, one))];
      return [key, value];
    });
    const own: Json = Object.fromEntries(renamed);
    if ('id' in record) return own;
    const minute = this.#number(place) % 500_000;
    const time = (offset: number) =>
      new Date(Date.UTC(2001, 0, 1, 0, minute + offset)).toISOString().replace('.000', '');
    const times = { start: time(0), startDate: time(0), end: time(15), endDate: time(15) };
    return { ...own, ...Object.fromEntries(Object.entries(times).filter(([key]) => key in own)) };
  }

  #renamedIn(place: string, value: unknown): unknown {
    const isRecord = typeof value === 'object' && value !== null && 'id' in value;
    return isRecord ? this.#renamed(place, value as Json) : value;
  }

  #sample(place: string, of: fc.Arbitrary<string>, count: number): string[] {
    return fc.sample(of, { seed: this.#number(place), numRuns: count });
  }

  #hash(place: string): Buffer {
    return createHash('sha256').update(`${this.#seed} ${place}`).digest();
  }

  #number(place: string): number {
    return this.#hash(place).readUInt32BE() >>> 1;
  }

  #uuid(place: string): string {
    const hex = this.#hash(place).toString('hex');
    return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
  }
}
