import type { Logger } from 'pino';
import type { EndpointName } from '../contract/endpoints.ts';
import { Failure } from '../contract/failures.ts';
import { itemTexts } from '../db/write/item-texts.ts';
import type { ServiceClient } from '../service/client.ts';
import { walkPages } from '../service/walk.ts';
import { openService } from './service.ts';
import type { Settings } from './settings.ts';
import { type FieldDifference, VersionDiff } from './version-diff.ts';

export type { FieldDifference } from './version-diff.ts';

/** What is compared: versions differ in documents and usage data (seed 9), and it costs little to see that the rest is the same. */
export const comparedResources = ['companies', 'connections', 'meters', 'documents', 'usageData'] as const;
export type ComparedResource = (typeof comparedResources)[number];

export interface ResourceDiff {
  readonly resource: ComparedResource;
  /** Records that were read in both versions. */
  readonly compared: number;
  /** Records that one of them alone showed: the service changed meanwhile, or lists them in another order. */
  readonly unmatched: number;
  readonly fields: readonly FieldDifference[];
}

export interface VersionsDiff {
  readonly from: string;
  readonly to: string;
  readonly resources: readonly ResourceDiff[];
}

/**
 * Reads the same records in two versions of the API and compares them field by field; at most `records` of each
 * resource, of one company or of as many as it takes.
 * @throws Error when the service has no such version
 */
export async function diffVersions(options: {
  readonly settings: Settings['service'];
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
      companyId === undefined ? await companiesOf(clients[0], settings.companies) : [companyId];
    for (const resource of comparedResources) {
      if (!clients[0].has(resource) || (resource === 'companies' && companyId !== undefined)) continue;
      const diff = new VersionDiff();
      let unmatched = 0;
      for (const company of resource === 'companies' ? [undefined] : companies) {
        const left = records - diff.records;
        if (left <= 0) break;
        unmatched += await compareListing(clients, resource, company, left, diff);
        onProgress?.(resource, diff.records);
      }
      resources.push({ resource, compared: diff.records, unmatched, fields: diff.differences() });
    }
    return { from, to, resources };
  } finally {
    await Promise.all(clients.map((client) => client.close()));
  }
}

/** The service's address with another version at its end. */
const versionUrl = (url: string, version: string): string => url.replace(/\/[^/]*\/?$/, `/${version}`);

/** `GET /ping` confirms the version in use (seed 9.5). */
async function requireVersion(client: ServiceClient, version: string): Promise<void> {
  try {
    await client.ping();
  } catch (error) {
    if (!(error instanceof Failure) || error.code !== 'SERVICE_NOT_FOUND') throw error;
    throw new Error(`the service has no version ${version}: ${error.message}`, { cause: error });
  }
}

async function companiesOf(client: ServiceClient, configured: readonly string[]): Promise<string[]> {
  if (!client.has('companies')) return [...configured];
  const page = await client.page({ endpoint: 'companies', params: {}, page: 1, lane: 'backfill' });
  return [...new Set([...configured, ...page.ids.filter((id) => id !== null)])];
}

/** Compares a listing of both versions; returns how many records only one showed. */
async function compareListing(
  [from, to]: readonly [ServiceClient, ServiceClient],
  endpoint: EndpointName,
  companyId: string | undefined,
  limit: number,
  diff: VersionDiff,
): Promise<number> {
  const params: Record<string, string> = companyId === undefined ? {} : { companyId };
  const [before, after] = await Promise.all([
    readRecords(from, endpoint, params, limit),
    readRecords(to, endpoint, params, limit),
  ]);
  let matched = 0;
  for (const [id, text] of before) {
    const other = after.get(id);
    if (other === undefined) continue;
    matched += 1;
    diff.compare(id, text, other);
  }
  return before.size + after.size - 2 * matched;
}

/** The text of the first records of a listing, by their id. */
async function readRecords(
  client: ServiceClient,
  endpoint: EndpointName,
  params: Readonly<Record<string, string>>,
  limit: number,
): Promise<Map<string, string>> {
  const read = new Map<string, string>();
  for await (const page of walkPages({ client, endpoint, params, lane: 'backfill' })) {
    for (const [at, text] of itemTexts(page).entries()) {
      const id = page.ids[at];
      if (id !== null && id !== undefined && read.size < limit) read.set(id, text);
    }
    if (read.size >= limit) break;
  }
  return read;
}
