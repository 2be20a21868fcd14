import { Context } from '@temporalio/activity';
import type { FailureCode } from '../contract/failures.ts';
import type { CatchUpKind } from '../contract/names.ts';
import { isStranger, postponeStranger } from '../db/backfill/strangers.ts';
import { dueOwners } from '../db/catch-up/due.ts';
import { parkedCodes, parkService, reviveParked } from '../db/catch-up/parking.ts';
import { parkOwner } from '../db/catch-up/settle.ts';
import { withoutStatement } from '../db/failures.ts';
import type { ActivityDependencies } from './dependencies.ts';
import { ownFailure } from './own-failure.ts';

/** A refusal that is the same for everything that is asked. */
const refusesAll: readonly FailureCode[] = ['SERVICE_KEY_REFUSED'];

/** What the first answer ends. */
const endedByAnswers: readonly FailureCode[] = [...refusesAll, 'SERVICE_OUTAGE'];

/** Failures whose end for one owner is likely their end for others. A 404 is often about one record alone. */
const endTogether: readonly FailureCode[] = [
  ...endedByAnswers,
  'SERVICE_ACCESS_DENIED',
  'SERVICE_REQUEST_REFUSED',
];

/**
 * Works for one owner after the other. What fails for one owner alone is parked with the reason, and the next one has
 * its turn; one that nothing but events tells of is given up some day. All work is parked when the service's refusal is the same for everybody. The first that succeeds again
 * revives those that wait for the same refusal. Trouble that everybody shares is thrown, for Temporal to retry: then
 * those have their turn that still have something due.
 */
export async function runOrPark(
  deps: ActivityDependencies,
  kind: CatchUpKind,
  owners: readonly string[],
  work: (owner: string) => Promise<void>,
): Promise<void> {
  const { db } = deps.warehouse;
  const parked = await parkedCodes(db, kind, owners);
  const retried = Context.current().info.attempt > 1;
  const left = retried ? await dueOwners(db, kind, owners.length, owners) : owners;
  for (const owner of left) {
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
      if (!refusesAll.includes(reason.code)) continue;
      await parkService(db, reason.code, reason.message);
      return;
    }
    const ended = [...parked.service, ...(parked.owners.get(owner) ?? [])];
    await revive(
      deps,
      endTogether.filter((code) => ended.includes(code)),
    );
    parked.service = [];
  }
}

const ownerIsStranger = async (
  { companies, warehouse }: ActivityDependencies,
  kind: CatchUpKind,
  owner: string,
): Promise<boolean> =>
  !companies.some((id) => id.toLowerCase() === owner) && (await isStranger(warehouse.db, kind, owner));

/** Told after anything was read: the service answers, and the key works. */
export async function reviveService(deps: ActivityDependencies): Promise<void> {
  await revive(deps, endedByAnswers);
}

async function revive(deps: ActivityDependencies, codes: readonly FailureCode[]): Promise<void> {
  if (codes.length === 0) return;
  const { events, kinds } = await reviveParked(deps.warehouse.db, codes, { over: true });
  if (events > 0) deps.log.info({ codes, events }, 'the service answers again: what was parked is due');
  await Promise.all(kinds.map((kind) => deps.wake(kind)));
}
