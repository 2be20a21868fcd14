import { isObject } from '../../contract/json.ts';
import { batches } from '../../contract/limits.ts';
import { canonicalId, canonicalUuid } from '../../contract/values.ts';
import { printedUuids } from '../../db/connection/arrays.ts';
import { insertNamedSites, unknownNeighbours } from '../../db/events/neighbours.ts';
import { settleRecords } from '../../db/events/settle.ts';
import { type DueRecords, dueRecords } from '../../db/queue/due.ts';
import { introduceCompany } from '../../db/records/companies.ts';
import { judgePass } from '../../service/stability.ts';
import { cancellation } from '../activity-context.ts';
import type { ActivityDependencies } from '../dependencies.ts';
import { closeEndpoint } from '../gates.ts';
import { asFailure } from '../map-failures.ts';
import { write } from '../reading/page-write.ts';
import { walkListing } from '../reading/walk-listing.ts';
import { type FoundRecord, has, joinedPage, type SingleReads } from './single.ts';

/**
 * Reads the due connections of a company, and the sites and meters that they name. Reads a few connections by
 * their ids, if the service has an endpoint for that, and otherwise the listing of the company.
 */
export async function catchUpConnections(
  deps: ActivityDependencies,
  companyId: string,
  probe: number,
  records?: DueRecords,
): Promise<void> {
  const { db } = deps.warehouse;
  const { readAt, due, closed } =
    records ?? (await dueRecords(db, 'connections', companyId, batches.recordsSettled));
  const reads: SingleReads = { deps, companyId, readAt, closed: new Set(closed), deleted: new Set(), probe };
  const { found, notFound } = await readConnectionsById(reads, due);
  const left = due.filter((id) => !found.has(id));
  const listing = left.length === 0 ? undefined : await readListing(reads);
  await readNeighbours(deps, 'connections', companyId, due);
  for (let at = 0; at < due.length; at += batches.connections) {
    const some = due.slice(at, at + batches.connections);
    const absent = some.filter((id) => !found.has(id) && listing?.proven === true && !listing.ids.has(id));
    const cap = deps.service.has('connections') ? deps.deletesCap : undefined;
    const settledBy = { companyId, notFound: absent, cap };
    await settleRecords(db, 'connections', some, readAt, settledBy);
  }
  const lost = notFound.find((id) => listing?.ids.has(id) === true);
  // The listing may have shown a connection just after it was requested.
  if (lost !== undefined && (await readConnection(reads, lost)) === undefined)
    await closeEndpoint(deps, 'connection', lost);
}

/** Reads the connections of the company. `proven`: whether the listing lacks all other connections. */
async function readListing({
  deps,
  companyId,
  readAt,
}: SingleReads): Promise<{ readonly ids: ReadonlySet<string>; readonly proven: boolean }> {
  const walk = { listing: 'connections', companyId, params: { companyId }, lane: 'live' } as const;
  const { ids, report } = await walkListing(deps, { ...walk, beganAt: readAt });
  return { ids: new Set(printedUuids(ids)), proven: judgePass(report.manifest).stable };
}

/**
 * Reads and writes a few connections by their ids. Leaves to the listing of the company what could not be read,
 * and records that do not say whose they are.
 */
async function readConnectionsById(
  reads: SingleReads,
  ids: readonly string[],
): Promise<{ readonly found: ReadonlyMap<string, FoundRecord>; readonly notFound: readonly string[] }> {
  const { deps, companyId, readAt, probe } = reads;
  const found = new Map<string, FoundRecord>();
  const notFound: string[] = [];
  if (!has(reads, 'connection') || ids.length > batches.recordsOneByOne || probe > 0)
    return { found, notFound };
  const answers = await Promise.allSettled(ids.map((id) => readConnection(reads, id)));
  cancellation().throwIfAborted();
  for (const [at, answer] of answers.entries()) {
    const id = ids[at] as string;
    if (answer.status === 'rejected') {
      if (asFailure(answer.reason)?.code === 'SERVICE_KEY_REFUSED') throw answer.reason;
    } else if (answer.value === undefined) notFound.push(id);
    else if (isComplete(answer.value, id)) found.set(id, answer.value);
  }
  const known = [...found.keys()];
  if (known.length > 0) {
    const { page, items } = joinedPage(found, known);
    const arrival = { listing: 'connections', companyId, byId: true, readAt } as const;
    await write(deps, { ...arrival, page: { ...page, ids: known, items } });
  }
  return { found, notFound };
}

async function readConnection({ deps }: SingleReads, id: string): Promise<FoundRecord | undefined> {
  const request = { endpoint: 'connection', params: { id }, lane: 'live', signal: cancellation() } as const;
  const answer = await deps.service.record(request);
  return answer.found ? answer : undefined;
}

/** Whether a record says which connection it is, and whose. */
function isComplete({ value }: FoundRecord, id: string): boolean {
  const company = isObject(value.company) ? value.company.id : value.company;
  const isTheirs = typeof company === 'string' && canonicalUuid(company) !== undefined;
  return isTheirs && typeof value.id === 'string' && canonicalId(value.id) === id;
}

/**
 * Reads what records that were just read name and the warehouse does not have: the listings that contain their
 * sites and their meters. Starts the first backfill of a company without a row, because its records show that the
 * service has it. The meters of a company are also read after each read of its connections.
 */
export async function readNeighbours(
  deps: ActivityDependencies,
  kind: 'connections' | 'documents',
  companyId: string,
  recordIds: readonly string[],
): Promise<void> {
  const { service } = deps;
  const { db } = deps.warehouse;
  const unknown = await unknownNeighbours(db, kind, companyId, recordIds);
  for (const id of unknown.companies) {
    // The backfill begins first: a company with a row counts as known.
    await deps.backfillFirst(id);
    await introduceCompany(db, id);
  }
  let beganAt: string | undefined = unknown.now;
  if (unknown.sites) {
    if (service.has('companies')) {
      const walk = { listing: 'companies', companyId: null, params: {}, lane: 'live' } as const;
      await walkListing(deps, { ...walk, beganAt, existingOnly: true });
      beganAt = undefined;
    }
    await insertNamedSites(db, kind, recordIds);
  }
  if (!service.has('meters') || !(unknown.meters || kind === 'connections')) return;
  for (const owner of unknown.owners) {
    const params = { companyId: owner };
    await walkListing(deps, { listing: 'meters', companyId: owner, params, lane: 'live', beganAt });
    beganAt = undefined;
  }
}
