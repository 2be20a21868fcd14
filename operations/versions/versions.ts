import type { Logger } from 'pino';
import { openService } from '../../app/service.ts';
import type { Settings } from '../../app/settings.ts';
import { companyResources } from '../../contract/endpoints.ts';
import { Failure } from '../../contract/failures.ts';
import { itemTexts } from '../../db/records/item-texts.ts';
import type { ServiceClient } from '../../service/client.ts';
import { endOf, startOf } from '../../service/intervals.ts';
import { walkPages } from '../../service/walk.ts';
import { type FieldDifference, VersionDiff } from './diff.ts';

export type { FieldDifference } from './diff.ts';

/** Resources to compare. Versions differ in documents and usage (seed 9); checking the rest costs little. */
const comparedResources = ['companies', ...companyResources] as const;
export type ComparedResource = (typeof comparedResources)[number];

export interface ResourceDiff {
  readonly resource: ComparedResource;
  /** Number of records that were read in both versions. */
  readonly compared: number;
  /**
   * Number of records that only one version listed: the service changed meanwhile, or orders them otherwise.
   */
  readonly unmatched: number;
  readonly fields: readonly FieldDifference[];
}

export interface VersionsDiff {
  readonly from: string;
  readonly to: string;
  readonly resources: readonly ResourceDiff[];
}

/**
 * Bounds of the search for readings: meters whose readings are compared, meters tried, meters tried of a
 * company.
 */
const metersWithReadings = 5;
const metersMax = 100;
const metersOfCompanyMax = 20;

type Params = Readonly<Record<string, string>>;

/**
 * Reads the same records in two versions of the API and compares them field by field. It reads at most
 * `records` of each resource, of one company or as many as needed, and readings of a few meters.
 * @throws Error when the service has no such version
 */
export async function diffVersions(options: {
  readonly settings: Pick<Settings, 'service' | 'proxies'>;
  readonly service: { readonly url: string; readonly apiKey: string };
  readonly from: string;
  readonly to: string;
  readonly companyId?: string | undefined;
  readonly records: number;
  readonly log: Logger;
  readonly onProgress?: (resource: ComparedResource, compared: number) => void;
}): Promise<VersionsDiff> {
  const { settings, service, from, to, records, companyId, log, onProgress } = options;
  const clients = [from, to].map(
    (version) => openService(settings, versionUrl(service.url, version), service.apiKey, log).client,
  ) as [ServiceClient, ServiceClient];
  try {
    await requireVersion(clients[0], from);
    await requireVersion(clients[1], to);
    const resources: ResourceDiff[] = [];
    const companies =
      companyId === undefined
        ? replayable(companiesOf(clients[0], settings.service.companies))
        : () => [companyId];
    /** Yields the parameters of the listings from which a resource is read, one after the other. */
    const listings = async function* (resource: ComparedResource): AsyncGenerator<Params> {
      if (resource === 'companies') yield {};
      else if (resource === 'intervals') yield* metersOf(clients[0], companies());
      else for await (const company of companies()) yield { companyId: company };
    };
    for (const resource of comparedResources) {
      if (!clients[0].has(resource) || (resource === 'companies' && companyId !== undefined)) continue;
      const diff = new VersionDiff();
      let unmatched = 0;
      const each = resource === 'intervals' ? Math.ceil(records / metersWithReadings) : records;
      for await (const params of listings(resource)) {
        const limit = Math.min(each, records - diff.records);
        const [before, after] = (await Promise.all(
          clients.map((client) => readRecords(client, resource, params, limit)),
        )) as [Map<string, string>, Map<string, string>];
        unmatched += compare(before, after, diff);
        onProgress?.(resource, diff.records);
        if (diff.records >= records) break;
      }
      resources.push({ resource, compared: diff.records, unmatched, fields: diff.differences() });
    }
    return { from, to, resources };
  } finally {
    await Promise.all(clients.map((client) => client.close()));
  }
}

/** Replaces the version at the end of the service's URL. */
const versionUrl = (url: string, version: string): string => url.replace(/\/[^/]*\/?$/, `/${version}`);

/** Checks that the service has a version: `GET /ping` confirms the version in use (seed 9.5). */
async function requireVersion(client: ServiceClient, version: string): Promise<void> {
  try {
    await client.ping();
  } catch (error) {
    if (!(error instanceof Failure) || error.code !== 'SERVICE_NOT_FOUND') throw error;
    throw new Error(`the service has no version ${version}: ${error.message}`, { cause: error });
  }
}

/** Yields the configured companies, then those that the service lists, page by page on demand. */
async function* companiesOf(client: ServiceClient, configured: readonly string[]): AsyncGenerator<string> {
  const yielded = new Set(configured);
  yield* yielded;
  if (!client.has('companies')) return;
  for await (const page of walkPages({
    client,
    endpoint: 'companies',
    params: {},
    lane: 'backfill',
    judged: false,
  })) {
    for (const id of page.ids) {
      if (id === null || yielded.has(id)) continue;
      yielded.add(id);
      yield id;
    }
  }
}

/** Makes a source that can be iterated several times; it reads each item once, on demand. */
function replayable<T>(source: AsyncIterator<T>): () => AsyncGenerator<T> {
  const items: T[] = [];
  return async function* () {
    for (let at = 0; ; at++) {
      if (at === items.length) {
        const next = await source.next();
        if (next.done) return;
        items.push(next.value);
      }
      yield items[at] as T;
    }
  };
}

/** Yields meters that may have readings: a spread sample of each company's first page of meters. */
async function* metersOf(
  client: ServiceClient,
  companies: AsyncIterable<string> | Iterable<string>,
): AsyncGenerator<Params> {
  if (!client.has('meters')) return;
  let looked = 0;
  for await (const companyId of companies) {
    const { ids } = await client.page({
      endpoint: 'meters',
      params: { companyId },
      page: 1,
      lane: 'backfill',
    });
    const step = Math.max(1, Math.ceil(ids.length / metersOfCompanyMax));
    for (const meterId of ids.filter((_, at) => at % step === 0)) {
      if (meterId === null) continue;
      if (looked >= metersMax) return;
      looked += 1;
      yield { meterId };
    }
  }
}

/** Compares the records of both versions; returns how many only one version listed. */
function compare(
  before: ReadonlyMap<string, string>,
  after: ReadonlyMap<string, string>,
  diff: VersionDiff,
): number {
  let matched = 0;
  for (const [id, text] of before) {
    const other = after.get(id);
    if (other === undefined) continue;
    matched += 1;
    diff.compare(id, text, other);
  }
  return before.size + after.size - 2 * matched;
}

/**
 * Reads the texts of a listing's first records by id; of readings by meter and time, as they may have no id.
 */
async function readRecords(
  client: ServiceClient,
  endpoint: ComparedResource,
  params: Params,
  limit: number,
): Promise<Map<string, string>> {
  const read = new Map<string, string>();
  for await (const page of walkPages({ client, endpoint, params, lane: 'backfill', judged: false })) {
    for (const [at, text] of itemTexts(page).entries()) {
      const id = endpoint === 'intervals' ? placeOf(params, page.items[at]) : page.ids[at];
      if (id !== null && id !== undefined && read.size < limit) read.set(id, text);
    }
    if (read.size >= limit) break;
  }
  return read;
}

/** Key of a reading: its meter and times; undefined without a start. */
function placeOf({ meterId }: Params, reading: unknown): string | undefined {
  const fields = (reading ?? {}) as Record<string, unknown>;
  const start = startOf(fields) ?? null;
  return start === null ? undefined : `${meterId} ${start} ${endOf(fields) ?? ''}`.trimEnd();
}
