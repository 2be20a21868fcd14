import PQueue from 'p-queue';
import { batches } from '../../contract/limits.ts';
import type { CatchUpKind } from '../../contract/names.ts';
import { dueOwners } from '../../db/catch-up/due.ts';
import { withTransaction } from '../../db/connection/connect.ts';
import { trySleep } from '../../db/events/wake.ts';
import type { ActivityDependencies } from '../dependencies.ts';
import { mapFailures } from '../map-failures.ts';
import { runOrPark } from '../parking.ts';
import { catchUpConnections } from './connections.ts';
import { catchUpDocuments } from './documents.ts';
import { catchUpIntervals } from './intervals.ts';
import type { EndpointsTried } from './single.ts';

export function catchUpActivities(dependencies: ActivityDependencies) {
  // Local activities must not wait for a connection, so they use the pool of the event activities.
  const { db } = dependencies.warehouse;
  const deps = { ...dependencies, warehouse: dependencies.catchingUp };
  const comparisons = new PQueue({ concurrency: batches.comparisonsAtOnce });
  const tried: EndpointsTried = { missing: new Set(), working: new Set() };
  const catchUpOf: Readonly<Record<CatchUpKind, (owner: string) => Promise<void>>> = {
    connections: (companyId) => catchUpConnections(deps, companyId),
    documents: (companyId) => catchUpDocuments({ deps, tried, companyId }),
    intervals: (meterId) => catchUpIntervals(deps, meterId, (work) => comparisons.add(work)),
  };

  return {
    /** Returns owners with due records (companies, or meters for intervals), the longest waiting first. */
    dueOwners: mapFailures(
      async ({ kind, limit }: { kind: CatchUpKind; limit: number }): Promise<string[]> => {
        return await dueOwners(db, kind, limit);
      },
    ),

    /** Reads the stale records of owners. Parks owners that fail; throws failures that all owners share. */
    catchUpOwners: mapFailures(
      async ({ kind, owners }: { kind: CatchUpKind; owners: readonly string[] }): Promise<void> => {
        await runOrPark(deps, kind, owners, catchUpOf[kind]);
      },
    ),

    trySleep: mapFailures(
      async ({ kind }: { kind: CatchUpKind }): Promise<{ asleep: boolean; dueInMs: number | null }> => {
        return await withTransaction(db, (tx) => trySleep(tx, kind));
      },
    ),
  };
}
