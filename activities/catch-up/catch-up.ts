import { sweepBounds } from '../../contract/limits.ts';
import { catchUpKinds, type Queue } from '../../contract/names.ts';
import { dueOwners, nextDueInMs } from '../../db/catch-up/due.ts';
import type { ActivityDependencies } from '../dependencies.ts';
import { mapFailures } from '../map-failures.ts';
import { runOrPark } from '../parking.ts';
import type { OwnerReads } from './owner-reads.ts';

/** What the sweep does next. */
export interface DueForSweep {
  /** Owners with due events, the longest waiting of each kind first. */
  readonly owners: readonly Queue[];
  /** Time until the next event is due; 0 if one is due now, null if none waits. */
  readonly dueInMs: number | null;
}

export function catchUpActivities(deps: ActivityDependencies, reads: OwnerReads) {
  // Local activities must not wait for a connection, so they use the pool of the event activities.
  const { db } = deps.warehouse;
  return {
    /** Returns what the sweep reads next, except owners that it reads already. */
    dueForSweep: mapFailures(
      async ({
        limit,
        except,
      }: {
        readonly limit: number;
        readonly except: readonly Queue[];
      }): Promise<DueForSweep> => {
        const due: { readonly place: number; readonly queue: Queue }[] = [];
        for (const kind of limit === 0 ? [] : catchUpKinds) {
          const busy = except.flatMap((one) => (one.kind === kind ? [one.owner] : []));
          const owners = await dueOwners(db, kind, limit + busy.length);
          for (const [place, owner] of owners.filter((one) => !busy.includes(one)).entries())
            due.push({ place, queue: { kind, owner } });
        }
        // The kinds take turns.
        due.sort((a, b) => a.place - b.place);
        const owners = due.slice(0, limit).map(({ queue }) => queue);
        return { owners, dueInMs: await nextDueInMs(db, except) };
      },
    ),

    /**
     * Reads due records of owners for a while; those that it does not come to are left to the next look. Parks
     * owners that fail; throws failures that all owners share.
     */
    sweepOwners: mapFailures(async ({ owners }: { owners: readonly Queue[] }): Promise<void> => {
      const untilMs = deps.now() + sweepBounds.sliceMs;
      for (const [kind, of] of Map.groupBy(owners, (one) => one.kind))
        await runOrPark(
          { ...deps, warehouse: deps.catchingUp },
          kind,
          of.map(({ owner }) => owner),
          (owner) => reads.read(kind, owner),
          untilMs,
        );
    }),

    /** Starts the sweep, unless it runs. */
    startSweep: mapFailures(async (_: object): Promise<void> => {
      await deps.startSweep();
    }),
  };
}
