import { Context } from '@temporalio/activity';
import { Failure, type FailureCode } from '../contract/failures.ts';
import { companiesAfter } from '../db/backfill/order.ts';
import { warehouseNow } from '../db/catch-up/due.ts';
import { noteOutage } from '../db/catch-up/parking.ts';
import type { WaitingReason } from '../db/catch-up/stale.ts';
import { withoutStatement } from '../db/failures.ts';
import type { ActivityDependencies } from './dependencies.ts';
import { asFailure } from './map-failures.ts';

/**
 * Attempts, some minutes in all, after which trouble is taken for that of the one whose turn it is, where nothing
 * tells whose it is.
 */
export const lastingAttempts = 8;

/**
 * The reason when work failed for its own sake: the service refuses it, or fails it and answers others meanwhile. It is
 * undefined for trouble that everybody shares: a service or a warehouse that is away is waited for together.
 */
export async function ownFailure(
  deps: ActivityDependencies,
  error: unknown,
): Promise<WaitingReason | undefined> {
  const lasts = Context.current().info.attempt > lastingAttempts;
  const failure = asFailure(error);
  if (failure === undefined) return lasts ? unexpected(error) : undefined;
  const { code, message } = failure;
  const reason = { code, message: `${code}: ${message}` };
  if (failure.action !== 'retry') return reason;
  if (code === 'SERVICE_BUSY') return undefined;
  if (code === 'WAREHOUSE_UNAVAILABLE') return lasts && (await warehouseAnswers(deps)) ? reason : undefined;
  return (await answersOthers(deps, reason.message)) ? reason : undefined;
}

/** Listings that tell by their first page whether the service answers: the smallest first. */
const telling = ['connections', 'documents', 'companies'] as const;

/**
 * Whether the service, which failed a request, answers others; notes an outage when it answers none. Its /ping does not
 * tell: it may work while all else fails, or fail alone.
 */
async function answersOthers(deps: ActivityDependencies, failed: string): Promise<boolean> {
  const { service, warehouse } = deps;
  const signal = Context.current().cancellationSignal;
  const [companyId] = await companiesAfter(warehouse.db, null, 1);
  const endOf = async (endpoint: (typeof telling)[number]): Promise<Failure | undefined> => {
    const params: Record<string, string> = companyId === undefined ? {} : { companyId };
    try {
      await service.page({ endpoint, params, page: 1, lane: 'live', signal });
      return undefined;
    } catch (error) {
      if (error instanceof Failure) return error;
      throw error;
    }
  };
  const answers = (end: Failure | undefined): boolean => end === undefined || end.action === 'park';
  const [first, ...others] = telling.filter(
    (name) => service.has(name) && (name === 'companies' || companyId !== undefined),
  );
  if (first === undefined) return await service.answers(signal);
  const end = await endOf(first);
  if (answers(end)) return true;
  const ends = [end, ...(await Promise.all(others.map(endOf)))];
  if (ends.some(answers)) return true;
  if (!ends.some((one) => one?.code === 'SERVICE_BUSY')) await noteOutage(warehouse.db, failed);
  return false;
}

/**
 * The service's refusal that a part of a run failed with. Anything else is thrown, for Temporal to retry; an outage is
 * noted.
 */
export async function refusal(deps: ActivityDependencies, error: unknown): Promise<Failure> {
  Context.current().cancellationSignal.throwIfAborted();
  const failure = asFailure(error);
  if (failure !== undefined && failure.action !== 'retry') return failure;
  await ownFailure(deps, error);
  throw error;
}

async function warehouseAnswers({ warehouse }: ActivityDependencies): Promise<boolean> {
  return await warehouseNow(warehouse.db).then(
    () => true,
    () => false,
  );
}

function unexpected(error: unknown): WaitingReason {
  const shown = withoutStatement(error);
  const code = 'UNEXPECTED_ERROR';
  return { code, message: `${code}: ${shown instanceof Error ? shown.message : String(shown)}` };
}

/**
 * Works for each, at once. Those that the service fails alone are noted in `failed` and left out of the answer, by id, as are
 * those that it refuses for a reason that is `theirs`; any other refusal is thrown, as is trouble that everybody shares.
 */
export async function settleEach<T>(
  deps: ActivityDependencies,
  failed: Map<string, WaitingReason>,
  ids: readonly string[],
  work: (id: string) => Promise<T>,
  theirs: (code: FailureCode) => boolean,
): Promise<Map<string, T>> {
  const done = new Map<string, T>();
  const ends = await Promise.allSettled(ids.map(work));
  for (const [at, id] of ids.entries()) {
    const end = ends[at] as PromiseSettledResult<T>;
    if (end.status === 'fulfilled') {
      done.set(id, end.value);
      continue;
    }
    Context.current().cancellationSignal.throwIfAborted();
    const failure = asFailure(end.reason);
    const refused =
      failure?.action === 'park' && failure.code !== 'SERVICE_KEY_REFUSED' && theirs(failure.code);
    const passes = failure?.action === 'retry';
    const reason = passes || refused ? await ownFailure(deps, end.reason) : undefined;
    if (reason === undefined) throw end.reason;
    failed.set(id, refused ? { ...reason, code: 'SERVICE_RECORD_REFUSED' } : reason);
  }
  return done;
}
