import { singleEndpoints } from '../../contract/endpoints.ts';
import { sweepBounds } from '../../contract/limits.ts';
import { catchUpKinds, type Queue } from '../../contract/names.ts';
import { dueOwners, type NextDue, nextDue, warehouseNow } from '../../db/queue/due.ts';
import { endpointScope, serviceScope } from '../../db/queue/gates.ts';
import type { ActivityDependencies } from '../dependencies.ts';
import { probeEndpoint, probeService, readOwners } from '../gates.ts';
import { mapFailures } from '../map-failures.ts';
import type { OwnerReads } from './owner-reads.ts';

/** What the sweep does next. */
export interface DueForSweep extends NextDue {
  /** Owners with due events, the longest waiting of each kind first. */
  readonly owners: readonly Queue[];
}

/** What a lane left. */
export interface OwnersSwept {
  readonly large: readonly Queue[];
}

export function sweepActivities(deps: ActivityDependencies, reads: OwnerReads) {
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
        const asOf = await warehouseNow(db);
        const due: { readonly place: number; readonly queue: Queue }[] = [];
        for (const kind of limit === 0 ? [] : catchUpKinds) {
          const busy = except.flatMap((one) => (one.kind === kind ? [one.owner] : []));
          const owners = await dueOwners(db, kind, limit + busy.length, { asOf });
          for (const [place, owner] of owners.filter((one) => !busy.includes(one)).entries())
            due.push({ place, queue: { kind, owner } });
        }
        // The kinds take turns.
        due.sort((a, b) => a.place - b.place);
        const owners = due.slice(0, limit).map(({ queue }) => queue);
        return { owners, ...(await nextDue(db, asOf)) };
      },
    ),

    /**
     * Reads due records of owners for a while; those that it does not come to are left to the next look. Closes
     * the gates of owners that fail; throws failures that all owners share. Returns owners with so many due
     * records that they need a lane of their own: there `walks` says that their listings are read.
     */
    sweepOwners: mapFailures(
      async ({
        owners,
        walks = false,
      }: {
        readonly owners: readonly Queue[];
        readonly walks?: boolean;
      }): Promise<OwnersSwept> => {
        const untilMs = deps.now() + sweepBounds.sliceMs;
        const large: Queue[] = [];
        for (const [kind, of] of Map.groupBy(owners, (one) => one.kind))
          await readOwners(
            { ...deps, warehouse: deps.catchingUp },
            kind,
            of.map(({ owner }) => owner),
            async (owner, probe) => {
              const { isLarge } = await reads.read({ kind, owner }, { probe, walks });
              if (isLarge && !walks) large.push({ kind, owner });
            },
            untilMs,
          );
        return { large };
      },
    ),

    /** Sends a request for each of these shared gates whose next probe nobody else has sent, and opens it if it can. */
    probeGates: mapFailures(async ({ scopes }: { readonly scopes: readonly string[] }): Promise<void> => {
      if (scopes.includes(serviceScope)) return await probeService(deps);
      for (const endpoint of singleEndpoints)
        if (scopes.includes(endpointScope(endpoint))) await probeEndpoint(deps, endpoint);
    }),

    /** Starts the sweep, unless it runs. */
    startSweep: mapFailures(async (_: object): Promise<void> => {
      await deps.startSweep();
    }),
  };
}

/**
 * What workflows of version 0.2 call that still run after an update: nothing is due for them, and the sweep reads
 * the records instead, so they end. Removed in version 0.4.
 */
export const endedActivities = {
  dueOwners: async (_: { kind: string; limit: number }): Promise<string[]> => [],
  catchUpOwners: async (_: { kind: string; owners: readonly string[] }): Promise<void> => {},
  trySleep: async (_: { kind: string }): Promise<{ asleep: boolean; dueInMs: number | null }> => ({
    asleep: true,
    dueInMs: null,
  }),
  wakeCatchUps: async (_: { kinds: readonly string[] }): Promise<void> => {},
};
