import type { Endpoint, EndpointCatalogue, EndpointName, ListingFilter } from '../contract/endpoints.ts';
import { Failure, type FailureCode } from '../contract/failures.ts';
import { isObject } from '../contract/json.ts';
import { createQuote, parse, unexpected } from './failures.ts';
import { type Page, readPage } from './page.ts';
import { createRequests, type RequestOptions } from './request.ts';
import type { Lane, Pace } from './throttle.ts';
import { type Answer, openWire, type WireOptions } from './wire.ts';

/** Failures after which the service answers no request. */
const noAnswers: readonly FailureCode[] = ['SERVICE_UNREACHABLE', 'SERVICE_BUSY', 'SERVICE_ERROR'];

export interface ServiceClientOptions extends WireOptions, RequestOptions {
  readonly endpoints: EndpointCatalogue;
}

interface Request {
  readonly endpoint: EndpointName;
  /** Values of the placeholders of the endpoint's path and query. */
  readonly params: Readonly<Record<string, string>>;
  readonly lane: Lane;
  readonly signal?: AbortSignal | undefined;
}

export interface PageRequest extends Request {
  /** Receives the function that returns the page's memory after its write; by default the read returns it. */
  readonly hold?: ((release: () => void) => void) | undefined;
  readonly filters?: readonly ListingFilter[] | undefined;
  /** 1-indexed. Beyond the last page the service answers with the last page (service.md 7, 8). */
  readonly page: number;
}

export type RecordAnswer =
  | { readonly found: true; readonly body: string; readonly value: Readonly<Record<string, unknown>> }
  | { readonly found: false };

export interface Ping {
  readonly version: string | null;
  readonly date: string | null;
}

/**
 * Reads the service's API. Every call is retried for a short time (see `createRetry`). A call rejects with a
 * Failure, which never contains the API key, or with the signal's reason as soon as it aborts.
 */
export interface ServiceClient {
  /**
   * Whether the catalogue has the endpoint and the filter; `documentUsage` only together with `usageData`. Other
   * calls fail with SERVICE_NOT_FOUND.
   */
  has(endpoint: EndpointName, filter?: ListingFilter): boolean;
  /** @throws Failure SERVICE_ANSWER_UNREADABLE when the answer has no array of records */
  page(request: PageRequest): Promise<Page>;
  /** Reads a single record. `found: false` is a 404 or 410: it is gone, or the catalogue has a wrong path. */
  record(request: Request): Promise<RecordAnswer>;
  /** Reads `GET /ping` (service.md 9.5). `version` is a value of that name; `date` is the service's clock. */
  ping(signal?: AbortSignal): Promise<Ping>;
  /** Whether `/ping` is answered. A refusal or a 404 is an answer, too; a failure of `noAnswers` is not. */
  answers(signal?: AbortSignal): Promise<boolean>;
  pace(): Pace;
  /** Closes the client's own connections, and aborts requests in flight. */
  close(): Promise<void>;
}

/** @throws Error if the base address is not an http(s) URL, or a header cannot carry the key */
export function createServiceClient(options: ServiceClientOptions): ServiceClient {
  // Usage has one source: without its listing, the records of documents.
  const endpoints =
    options.endpoints.usageData === null ? { ...options.endpoints, documentUsage: null } : options.endpoints;
  const quote = createQuote(options.apiKey);
  const wire = openWire(options);
  const requests = createRequests(wire, quote, options);

  function catalogued(name: EndpointName): Endpoint {
    const endpoint = endpoints[name];
    if (endpoint !== null) return endpoint;
    throw new Failure('SERVICE_NOT_FOUND', `the endpoint catalogue says that the service has no ${name}`);
  }

  async function ping(signal?: AbortSignal): Promise<Ping> {
    const read = ({ text, date }: Answer): Ping => ({ version: versionIn(text), date: date ?? null });
    return await requests.get({ name: 'ping', path: '/ping', lane: 'live', signal, read });
  }

  return {
    has: (name, filter) => endpoints[name] !== null && (filter === undefined || filter in endpoints[name]),
    async page({ endpoint: name, params, filters, page, lane, signal, hold }) {
      const endpoint = catalogued(name);
      const path = requestPath({ endpoint, params, filters, page });
      const read = (answer: Answer): Page => readPage(answer, endpoint, page);
      return await requests.get({ name, path, lane, signal, read, hold });
    },
    async record({ endpoint: name, params, lane, signal }) {
      const path = requestPath({ endpoint: catalogued(name), params });
      const read = (answer: Answer): RecordAnswer => {
        const value = parse(answer);
        if (isObject(value)) return { found: true, body: answer.text, value };
        throw unexpected('one record', answer, 'it is not an object');
      };
      try {
        return await requests.get({ name, path, lane, signal, read });
      } catch (error) {
        if (error instanceof Failure && error.code === 'SERVICE_NOT_FOUND') return { found: false };
        throw error;
      }
    },
    ping,
    async answers(signal) {
      try {
        await ping(signal);
        return true;
      } catch (error) {
        if (!(error instanceof Failure)) throw error;
        return !noAnswers.includes(error.code);
      }
    },
    pace: () => requests.pace(),
    async close() {
      if (options.dispatcher === undefined) await wire.dispatcher.destroy();
    },
  };
}

/** A value of another shape is not reported as the version. */
const versionShape = /^v?\d[\w.-]{0,20}$/i;

function versionIn(body: string): string | null {
  try {
    const value: unknown = JSON.parse(body);
    const version = isObject(value) ? (value.version ?? value.apiVersion) : value;
    return typeof version === 'string' && versionShape.test(version) ? version : null;
  } catch {
    return null;
  }
}

const placeholder = /\{(\w+)\}/g;

interface PathRequest {
  readonly endpoint: Endpoint;
  /** Values of the placeholders: companyId, meterId, id, start, end, … */
  readonly params: Readonly<Record<string, string>>;
  /** Filters of the catalogue to apply; a filter that the endpoint lacks is ignored. */
  readonly filters?: readonly ListingFilter[] | undefined;
  /** 1-indexed (service.md 8); left out for a single record. */
  readonly page?: number | undefined;
}

/**
 * Builds the path and query of a request, relative to the versioned base address. Leaves out a query
 * parameter if its placeholder has no value.
 * @throws Failure SERVICE_REQUEST_REFUSED when a placeholder of the path has no usable value
 */
export function requestPath({ endpoint, params, filters = [], page }: PathRequest): string {
  const path = endpoint.path.replace(placeholder, (_, name: string) =>
    segment(params[name], name, endpoint.path),
  );
  const parameters = new Map<string, string>();
  const templates = Object.assign({}, endpoint.query, ...filters.map((filter) => endpoint[filter]));
  for (const [name, template] of Object.entries<string>(templates)) {
    const value = filled(template, params);
    if (value !== undefined) parameters.set(name, value);
  }
  if (page !== undefined) parameters.set('page', String(page));
  const search = [...parameters].map(([name, value]) => `${encode(name)}=${encode(value)}`).join('&');
  return search === '' ? path : `${path}?${search}`;
}

/** Encodes a value as one segment. Refuses "." and "..", which would lead to another resource. */
function segment(value: string | undefined, name: string, path: string): string {
  if (value === undefined || value === '' || value === '.' || value === '..') {
    throw new Failure(
      'SERVICE_REQUEST_REFUSED',
      `${path} needs a value for {${name}}, not ${value === undefined ? 'none' : JSON.stringify(value)}`,
    );
  }
  return encode(value);
}

function filled(template: string, params: Readonly<Record<string, string>>): string | undefined {
  const names = [...template.matchAll(placeholder)].map((match) => match[1] ?? '');
  if (names.some((name) => params[name] === undefined)) return undefined;
  return template.replace(placeholder, (_, name: string) => params[name] ?? '');
}

function encode(value: string): string {
  // encodeURIComponent throws at a lone surrogate, which no id of the service can contain.
  return encodeURIComponent(value.toWellFormed());
}
