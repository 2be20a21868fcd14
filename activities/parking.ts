import { Context } from '@temporalio/activity';
import type { FailureCode } from '../contract/failures.ts';
import type { CatchUpKind } from '../contract/names.ts';
import { isStranger, postponeStranger } from '../db/backfill/strangers.ts';
import { dueOwners } from '../db/catch-up/due.ts';
import { parkedCodes, parkService, reviveParked } from '../db/catch-up/parking.ts';
import { parkOwner, type WaitingReason } from '../db/catch-up/postpone.ts';
import { withoutStatement } from '../db/connection/failures.ts';
import { type ActivityDependencies, isConfigured } from './dependencies.ts';
import { ownFailure } from './own-failure.ts';

/** Refusals that hold for every request. */
const refusesAll: readonly FailureCode[] = ['SERVICE_KEY_REFUSED'];

/** Failures that are over as soon as the service answers a request. */
const endedByAnswers: readonly FailureCode[] = [...refusesAll, 'SERVICE_OUTAGE'];

/** Failures that usually end for all owners at once. 404 is not among them: it often concerns one record. */
const endTogether: readonly FailureCode[] = [
  ...endedByAnswers,
  'SERVICE_ACCESS_DENIED',
  'SERVICE_REQUEST_REFUSED',
];

/**
 * Works for one owner after the other. Begins no other after `untilMs` of the monotonic clock.
 * - Parks an owner that fails without affecting others, with the reason, and continues with the next.
 * - Retries an owner that only events name after longer and longer pauses. After some attempts, its events
 *   count as `missing`.
 * - Parks all work if the service refuses every request.
 * - Revives work that was parked for a refusal once an owner with that refusal succeeds.
 * - Throws failures that all owners share, for Temporal to retry: the retry works for owners that are still
 *   due.
 */
export async function runOrPark(
  deps: ActivityDependencies,
  kind: CatchUpKind,
  owners: readonly string[],
  work: (owner: string) => Promise<void>,
  untilMs: number,
): Promise<void> {
  const { db } = deps.warehouse;
  const parked = await parkedCodes(db, kind, owners);
  const retried = Context.current().info.attempt > 1;
  const left = retried ? await dueOwners(db, kind, owners.length, owners) : owners;
  for (const owner of left) {
    if (deps.now() >= untilMs) return;
    try {
      await work(owner);
    } catch (error) {
      Context.current().cancellationSignal.throwIfAborted();
      const reason = await ownFailure(deps, error);
      if (reason === undefined) throw error;
      deps.log.warn({ kind, owner, code: reason.code, err: withoutStatement(error) }, 'parked');
      const asksService = reason.code.startsWith('SERVICE_') && !refusesAll.includes(reason.code);
      if (asksService && (await ownerIsStranger(deps, kind, owner))) {
        await postponeStranger(db, kind, owner, reason.message);
        continue;
      }
      await parkOwner(db, kind, owner, reason);
      if (await parkIfRefused(deps, reason)) return;
    }
    const ended = [...parked.service, ...(parked.owners.get(owner) ?? [])];
    await revive(
      deps,
      endTogether.filter((code) => ended.includes(code)),
    );
    parked.service = [];
  }
}

/** Parks all work if the service refuses every request; returns whether it does. */
export async function parkIfRefused(
  { warehouse: { db } }: ActivityDependencies,
  { code, message }: WaitingReason,
): Promise<boolean> {
  if (!refusesAll.includes(code)) return false;
  await parkService(db, code, message);
  return true;
}

const ownerIsStranger = async (
  deps: ActivityDependencies,
  kind: CatchUpKind,
  owner: string,
): Promise<boolean> => !isConfigured(deps, owner) && (await isStranger(deps.warehouse.db, kind, owner));

/** Revives work after any successful read: the service answers, and the key works. */
export async function reviveService(deps: ActivityDependencies): Promise<void> {
  await revive(deps, endedByAnswers);
}

async function revive(deps: ActivityDependencies, codes: readonly FailureCode[]): Promise<void> {
  if (codes.length === 0) return;
  const events = await reviveParked(deps.warehouse.db, codes, { over: true });
  if (events > 0) deps.log.info({ codes, events }, 'the service answers again: what was parked is due');
  if (events > 0) await deps.startSweep();
}
