import type { CatchUpKind } from '../../contract/names.ts';
import { dueOwners } from '../../db/catch-up/due.ts';
import { trySleep } from '../../db/events/wake.ts';
import type { ActivityDependencies } from '../dependencies.ts';
import { mapFailures } from '../map-failures.ts';
import { runOrPark } from '../parking.ts';
import { catchUpConnections } from './connections.ts';
import { catchUpDocuments } from './documents.ts';
import { catchUpIntervals } from './intervals.ts';
import type { EndpointsTried } from './single.ts';

export function catchUpActivities(dependencies: ActivityDependencies) {
  // What is asked within a workflow task is asked at once, over the connections of events.
  const { db } = dependencies.warehouse;
  const deps = { ...dependencies, warehouse: dependencies.catchingUp };
  const tried: EndpointsTried = { missing: new Set(), working: new Set() };
  const catchUpOf: Readonly<Record<CatchUpKind, (owner: string) => Promise<void>>> = {
    connections: (companyId) => catchUpConnections(deps, companyId),
    documents: (companyId) => catchUpDocuments({ deps, tried, companyId }),
    intervals: (meterId) => catchUpIntervals(deps, meterId),
  };

  return {
    /** Companies (meters, for intervals) that have events waiting to be read again, longest waiting first. */
    dueOwners: mapFailures(
      async ({ kind, limit }: { kind: CatchUpKind; limit: number }): Promise<string[]> => {
        return await dueOwners(db, kind, limit);
      },
    ),

    /**
     * Reads again what the events of these owners are about. What fails for one of them alone is parked with the
     * reason; trouble that everybody shares is retried by Temporal.
     */
    catchUpOwners: mapFailures(
      async ({ kind, owners }: { kind: CatchUpKind; owners: readonly string[] }): Promise<void> => {
        await runOrPark(deps, kind, owners, catchUpOf[kind]);
      },
    ),

    trySleep: mapFailures(
      async ({ kind }: { kind: CatchUpKind }): Promise<{ asleep: boolean; dueInMs: number | null }> => {
        return await db.transaction((tx) => trySleep(tx, kind));
      },
    ),
  };
}
