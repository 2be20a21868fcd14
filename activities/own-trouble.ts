import { Context } from '@temporalio/activity';
import { warehouseNow } from '../db/due.ts';
import { withoutStatement } from '../db/failures.ts';
import type { WaitingReason } from '../db/stale.ts';
import type { ActivityDependencies } from './dependencies.ts';
import { asFailure } from './failing.ts';

/**
 * Attempts, some minutes in all, after which trouble is taken for that of the one whose turn it is, where nothing
 * tells whose it is.
 */
export const lastingAttempts = 8;

/**
 * The reason when work failed for its own sake: the service refuses it, or fails it and answers others meanwhile. It is
 * undefined for trouble that everybody shares: a service or a warehouse that is away is waited for together.
 * `othersAnswered` is for work that nobody tries again before the next run: it looks whether a service that fails its
 * /ping fails that alone.
 */
export async function ownTrouble(
  deps: ActivityDependencies,
  error: unknown,
  othersAnswered: () => Promise<boolean> = async () => true,
): Promise<WaitingReason | undefined> {
  const { cancellationSignal, info } = Context.current();
  const lasts = info.attempt > lastingAttempts;
  const failure = asFailure(error);
  if (failure === undefined) return lasts ? unexpected(error) : undefined;
  const { code, message } = failure;
  const reason = { code, message: `${code}: ${message}` };
  if (failure.action !== 'retry') return reason;
  if (code === 'SERVICE_BUSY') return undefined;
  if (code === 'WAREHOUSE_UNAVAILABLE') return lasts && (await warehouseAnswers(deps)) ? reason : undefined;
  if (await deps.service.answers(cancellationSignal)) return reason;
  // It may fail its /ping alone; what gets no answer at all waits until there is one.
  return lasts && code !== 'SERVICE_UNREACHABLE' && (await othersAnswered()) ? reason : undefined;
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
 * those that it refuses where it `answers` for others; any other refusal is thrown, as is trouble that everybody shares.
 */
export async function eachAlone<T>(
  deps: ActivityDependencies,
  failed: Map<string, WaitingReason>,
  ids: readonly string[],
  work: (id: string) => Promise<T>,
  answers: () => boolean,
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
    const refused = failure?.action === 'park' && failure.code !== 'SERVICE_KEY_REFUSED' && answers();
    const passes = failure?.action === 'retry';
    const reason = passes || refused ? await ownTrouble(deps, end.reason) : undefined;
    if (reason === undefined) throw end.reason;
    failed.set(id, refused ? { ...reason, code: 'RECORD_NOT_SHOWN' } : reason);
  }
  return done;
}
