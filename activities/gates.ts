import { Context } from '@temporalio/activity';
import { type SingleEndpoint, singleEndpoints } from '../contract/endpoints.ts';
import { Failure, type FailureCode, type WaitingReason } from '../contract/failures.ts';
import { batches } from '../contract/limits.ts';
import type { CatchUpKind } from '../contract/names.ts';
import { attemptPolicy } from '../contract/retry-policy.ts';
import { companiesAfter } from '../db/backfill/run-companies.ts';
import { withoutStatement } from '../db/connection/failures.ts';
import { isKnownMeter } from '../db/events/ranges.ts';
import { dueOwners } from '../db/queue/due.ts';
import {
  claimProbe,
  closedAmong,
  closeGate,
  endpointScope,
  openGate,
  recordsToProbe,
  serviceScope,
  whyServiceClosed,
} from '../db/queue/gates.ts';
import { postponeUnknown } from '../db/queue/postpone.ts';
import { queueName } from '../db/queue/queue.ts';
import { isConfirmedCompany } from '../db/records/companies.ts';
import { cancellation } from './activity-context.ts';
import { type ActivityDependencies, isConfigured } from './dependencies.ts';
import { asFailure } from './map-failures.ts';
import { ownFailure, probesOf } from './own-failure.ts';

/** Refusals that hold for every request. */
const refusesAll: readonly FailureCode[] = ['SERVICE_KEY_REFUSED'];

/**
 * Reads the records of one owner after the other. Begins no other after `untilMs` of the monotonic clock.
 * - Closes the gate of an owner that fails without affecting others, and continues with the next.
 * - Passes over an owner with a closed gate, unless it is time for a probe, which reads one record. If it
 *   succeeds, the gate is opened, and the other records are due. `read` is given the number of the probe, or 0.
 * - Retries an owner that only events name after longer and longer pauses. After some attempts, its events
 *   count as `missing`.
 * - Closes the gate for all requests if the service refuses every request.
 * - Throws failures that all owners share, for Temporal to retry: the retry works for owners that are still
 *   due.
 */
export async function readOwners(
  deps: ActivityDependencies,
  kind: CatchUpKind,
  owners: readonly string[],
  read: (owner: string, probe: number) => Promise<void>,
  untilMs: number,
): Promise<void> {
  const { db } = deps.warehouse;
  const retried = Context.current().info.attempt > 1;
  const left = retried ? await dueOwners(db, kind, owners.length, { among: owners }) : owners;
  const scopes = left.map((owner) => queueName({ kind, owner }));
  const closed = await closedAmong(db, scopes);
  if (closed.has(serviceScope)) return;
  for (const [at, owner] of left.entries()) {
    if (deps.now() >= untilMs) return;
    const scope = scopes[at] as string;
    const probe = closed.has(scope) ? await claimProbe(db, scope) : 0;
    if (probe === undefined) continue;
    try {
      await read(owner, probe);
    } catch (error) {
      Context.current().cancellationSignal.throwIfAborted();
      const reason = await ownFailure(deps, error);
      if (reason === undefined) throw error;
      deps.log.warn({ kind, owner, code: reason.code, err: withoutStatement(error) }, 'an owner waits');
      if (await closeIfRefused(deps, reason)) return;
      const isOfService = reason.code.startsWith('SERVICE_');
      if (isOfService && !(await isKnown(deps, kind, owner)))
        await postponeUnknown(db, kind, owner, reason.message);
      else await closeGate(db, scope, reason);
      continue;
    }
    if (probe > 0) await openGate(db, scope);
  }
}

/** Closes the gate for all requests if the service refuses every request; returns whether it does. */
export async function closeIfRefused(
  { warehouse: { db } }: ActivityDependencies,
  reason: WaitingReason,
): Promise<boolean> {
  if (!refusesAll.includes(reason.code)) return false;
  await closeGate(db, serviceScope, reason);
  return true;
}

/** Returns why no request is sent while the gate for all requests is closed. Only the sweep asks again. */
export async function closedService({
  warehouse: { db },
}: ActivityDependencies): Promise<Failure | undefined> {
  const reason = await whyServiceClosed(db);
  if (reason === undefined) return undefined;
  const said = reason.message.replace(/^[A-Z_]+: /, '');
  return new Failure(reason.code, `${said} (requests wait until the service answers a probe)`);
}

/** Fails while the gate for all requests is closed. */
export async function failIfClosed(deps: ActivityDependencies): Promise<void> {
  const closed = await closedService(deps);
  if (closed !== undefined) throw closed;
}

/**
 * Asks the service whether it answers again, with one request for the whole deployment, and opens the gate
 * for all requests if it does. Each probe asks for another listing, because one may fail on its own.
 */
export async function probeService(deps: ActivityDependencies): Promise<void> {
  const { service, warehouse, log } = deps;
  const attempts = await claimProbe(warehouse.db, serviceScope);
  if (attempts === undefined) return;
  const companyIds = await companiesAfter(warehouse.db, null, batches.companiesProbed);
  const probes = probesOf(companyIds).filter(({ endpoint }) => service.has(endpoint));
  const probe = probes[attempts % probes.length];
  const signal = cancellation();
  try {
    if (probe !== undefined) await service.page({ ...probe, page: 1, lane: 'live', signal });
    else if (!(await service.answers(signal))) return;
  } catch (error) {
    const failure = asFailure(error);
    if (failure === undefined) throw error;
    const { code, message } = failure;
    const isRefusal = failure.action === 'park';
    // A refusal of this listing alone shows that the service answers.
    if (!isRefusal || refusesAll.includes(code)) {
      const closedFor = isRefusal ? code : 'SERVICE_OUTAGE';
      await closeGate(warehouse.db, serviceScope, { code: closedFor, message: `${code}: ${message}` });
      return;
    }
  }
  if (await openGate(warehouse.db, serviceScope))
    log.info({}, 'the service answers again: what waited is due');
}

/** Asks an endpoint for a record that the service has, and opens its gate if it answers. */
export async function probeEndpoint(deps: ActivityDependencies, endpoint: SingleEndpoint): Promise<void> {
  const { service, warehouse, log } = deps;
  const scope = endpointScope(endpoint);
  const attempts = await claimProbe(warehouse.db, scope);
  if (attempts === undefined) return;
  const ids = await recordsToProbe(warehouse.db, endpoint, batches.recordsProbed);
  const id = ids[attempts % ids.length];
  // Without the endpoint, or a record to ask for, nothing could ever open the gate, so it is opened.
  const works =
    !service.has(endpoint) || id === undefined || (await finds(deps, endpoint, id, cancellation()));
  if (works && (await openGate(warehouse.db, scope))) log.info({ endpoint }, 'an endpoint answers again');
}

/** Closes the gates of endpoints that answer 404 for each of a few records that the service has. */
export async function checkEndpoints(deps: ActivityDependencies): Promise<void> {
  const { service, warehouse, log } = deps;
  const signal = AbortSignal.any([cancellation(), AbortSignal.timeout(attemptPolicy.endpointCheckMs)]);
  for (const endpoint of singleEndpoints.filter((name) => service.has(name))) {
    try {
      const ids = await recordsToProbe(warehouse.db, endpoint, batches.recordsProbed);
      const [first] = ids;
      if (first === undefined || (await isAny(ids, (id) => finds(deps, endpoint, id, signal)))) continue;
      await closeEndpoint(deps, endpoint, first);
    } catch (error) {
      Context.current().cancellationSignal.throwIfAborted();
      log.warn({ endpoint, err: withoutStatement(error) }, 'an endpoint of single records was not checked');
    }
  }
}

/** Closes the gate of an endpoint that answers 404 for a record that a listing shows. */
export async function closeEndpoint(
  { warehouse, log }: ActivityDependencies,
  endpoint: SingleEndpoint,
  id: string,
): Promise<void> {
  const record = endpoint === 'connection' ? 'connection' : 'document';
  const message = `SERVICE_NOT_FOUND: the endpoint ${endpoint} answers 404 for ${record} ${id}, which the listing of its company shows; listings are read instead`;
  await closeGate(warehouse.db, endpointScope(endpoint), { code: 'SERVICE_NOT_FOUND', message });
  log.warn({ endpoint, [record]: id }, 'an endpoint answers 404 for a record that the service has');
}

/** Whether an endpoint does not answer 404 for a record. */
async function finds(
  { service }: ActivityDependencies,
  endpoint: SingleEndpoint,
  id: string,
  signal: AbortSignal,
): Promise<boolean> {
  const request = { params: { id }, lane: 'live', signal } as const;
  if (endpoint !== 'documentUsage') return (await service.record({ endpoint, ...request })).found;
  try {
    await service.page({ endpoint, ...request, page: 1 });
    return true;
  } catch (error) {
    if (error instanceof Failure && error.code === 'SERVICE_NOT_FOUND') return false;
    throw error;
  }
}

async function isAny(ids: readonly string[], test: (id: string) => Promise<boolean>): Promise<boolean> {
  for (const id of ids) if (await test(id)) return true;
  return false;
}

/** Whether a setting names a company, or the service showed it or the meter: an event is only a claim. */
async function isKnown(deps: ActivityDependencies, kind: CatchUpKind, owner: string): Promise<boolean> {
  const { db } = deps.warehouse;
  if (kind === 'intervals') return await isKnownMeter(db, owner);
  return isConfigured(deps, owner) || (await isConfirmedCompany(db, owner));
}
