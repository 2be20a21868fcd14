import { Failure, type WaitingReason } from '../contract/failures.ts';
import { batches } from '../contract/limits.ts';
import { attemptPolicy } from '../contract/retry-policy.ts';
import { companiesAfter } from '../db/backfill/run-companies.ts';
import { withoutStatement } from '../db/connection/failures.ts';
import { warehouseNow } from '../db/queue/due.ts';
import { closeGate, serviceScope } from '../db/queue/gates.ts';
import type { PageRequest } from '../service/client.ts';
import { cancellation, triesHere } from './activity-context.ts';
import type { ActivityDependencies } from './dependencies.ts';
import { asFailure } from './map-failures.ts';

/**
 * Returns why this item failed, if only this item is affected: the service refuses it, or fails for it but
 * answers for others. Returns undefined if the service or the warehouse is down for all items.
 */
export async function ownFailure(
  deps: ActivityDependencies,
  error: unknown,
): Promise<WaitingReason | undefined> {
  const lasts = triesHere() > attemptPolicy.unclearMax;
  const failure = asFailure(error);
  const reason = reasonOf(error);
  if (failure === undefined) return lasts ? reason : undefined;
  const { code } = failure;
  if (failure.action !== 'retry') return reason;
  if (code === 'SERVICE_BUSY') return undefined;
  if (code === 'WAREHOUSE_UNAVAILABLE') return lasts && (await warehouseAnswers(deps)) ? reason : undefined;
  return (await answersOthers(deps, reason.message)) ? reason : undefined;
}

/**
 * Whether the service answers other requests after one has failed; closes the gate for all requests if not. Requests listings
 * of several companies, because the failure may concern one, and not /ping, which may work on its own.
 */
async function answersOthers(deps: ActivityDependencies, failed: string): Promise<boolean> {
  const { service, warehouse } = deps;
  const signal = cancellation();
  const companyIds = await companiesAfter(warehouse.db, null, batches.companiesProbed);
  const failureAt = async ({ endpoint, params }: Probe): Promise<Failure | undefined> => {
    try {
      await service.page({ endpoint, params, page: 1, lane: 'live', signal });
      return undefined;
    } catch (error) {
      if (error instanceof Failure) return error;
      throw error;
    }
  };
  const answers = (failure: Failure | undefined): boolean =>
    failure === undefined || failure.action === 'park';
  const [first, ...others] = probesOf(companyIds).filter(({ endpoint }) => service.has(endpoint));
  if (first === undefined) return await service.answers(signal);
  const failure = await failureAt(first);
  if (answers(failure)) return true;
  const failures = [failure, ...(await Promise.all(others.map(failureAt)))];
  if (failures.some(answers)) return true;
  if (!failures.some((other) => other?.code === 'SERVICE_BUSY'))
    await closeGate(warehouse.db, serviceScope, { code: 'SERVICE_OUTAGE', message: failed });
  return false;
}

type Probe = Pick<PageRequest, 'endpoint' | 'params'>;

/** Requests that show whether the service answers, the smallest listings first. */
export const probesOf = (companyIds: readonly string[]): Probe[] => [
  ...companyIds.map((companyId): Probe => ({ endpoint: 'connections', params: { companyId } })),
  ...companyIds.map((companyId): Probe => ({ endpoint: 'documents', params: { companyId } })),
  { endpoint: 'companies', params: {} },
];

/** Returns the service's refusal that failed a part of a run. Throws anything else, and closes the gate in an outage. */
export async function refusal(deps: ActivityDependencies, error: unknown): Promise<Failure> {
  cancellation().throwIfAborted();
  const failure = asFailure(error);
  if (failure !== undefined && failure.action !== 'retry') return failure;
  if (failure?.code !== 'SERVICE_OUTAGE') await ownFailure(deps, error);
  throw error;
}

async function warehouseAnswers({ warehouse }: ActivityDependencies): Promise<boolean> {
  return await warehouseNow(warehouse.db).then(
    () => true,
    () => false,
  );
}

/** Why something failed, by the catalogue. What is not in it is a defect of metersync. */
export function reasonOf(error: unknown): WaitingReason {
  const plain = withoutStatement(error);
  const { code, message } = asFailure(error) ?? {
    code: 'UNEXPECTED_ERROR' as const,
    message: plain instanceof Error ? plain.message : String(plain),
  };
  return { code, message: `${code}: ${message}` };
}

/** Results by id, and the reasons for which the other ids failed. */
export interface Settled<T> {
  readonly done: ReadonlyMap<string, T>;
  readonly failed: ReadonlyMap<string, WaitingReason>;
}

/**
 * Works on all ids at once. Throws failures that concern all ids, and refusals unless `areTheirs` says that they
 * concern single ids; it is given the number of ids for which the work had a result.
 */
export async function settleEach<T>(
  deps: ActivityDependencies,
  ids: readonly string[],
  work: (id: string) => Promise<T>,
  areTheirs: (found: number) => boolean,
): Promise<Settled<T>> {
  const done = new Map<string, T>();
  const failed = new Map<string, WaitingReason>();
  const ends = await Promise.allSettled(ids.map(work));
  const found = ends.filter((end) => end.status === 'fulfilled' && end.value !== undefined).length;
  for (const [at, id] of ids.entries()) {
    const end = ends[at] as PromiseSettledResult<T>;
    if (end.status === 'fulfilled') {
      done.set(id, end.value);
      continue;
    }
    cancellation().throwIfAborted();
    const failure = asFailure(end.reason);
    const refused = failure?.action === 'park' && failure.code !== 'SERVICE_KEY_REFUSED' && areTheirs(found);
    const passes = failure?.action === 'retry';
    const reason = passes || refused ? await ownFailure(deps, end.reason) : undefined;
    if (reason === undefined) throw end.reason;
    failed.set(id, refused ? { ...reason, code: 'SERVICE_RECORD_REFUSED' } : reason);
  }
  return { done, failed };
}
