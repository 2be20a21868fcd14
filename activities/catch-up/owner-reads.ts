import PQueue from 'p-queue';
import { batches } from '../../contract/limits.ts';
import type { CatchUpKind } from '../../contract/names.ts';
import type { DueRecords } from '../../db/hot/due-records.ts';
import type { ActivityDependencies } from '../dependencies.ts';
import { catchUpConnections } from './connections.ts';
import { catchUpDocuments } from './documents.ts';
import { catchUpIntervals } from './intervals.ts';

/** Reads the records of owners. The drains and the sweep of a process share one. */
export interface OwnerReads {
  /** Reads the records of an owner: the given ones, those that are due, or one of them as the given probe. */
  read(kind: CatchUpKind, owner: string, records?: DueRecords, probe?: number): Promise<void>;
  /** Whether this process now reads records of the owner that have no endpoint of their own. */
  isWalking(kind: CatchUpKind, owner: string): boolean;
}

export function createOwnerReads(dependencies: ActivityDependencies): OwnerReads {
  const deps = { ...dependencies, warehouse: dependencies.catchingUp };
  const comparisons = new PQueue({ concurrency: batches.comparisonsAtOnce });
  const walking = new Set<string>();
  return {
    isWalking: (kind, owner) => walking.has(`${kind}/${owner}`),
    read: async (kind, owner, records, probe = 0) => {
      const key = `${kind}/${owner}`;
      if (kind !== 'documents' || !deps.service.has('document')) walking.add(key);
      try {
        if (kind === 'connections') await catchUpConnections(deps, owner, records);
        else if (kind === 'documents') await catchUpDocuments({ deps, companyId: owner, probe }, records);
        else await catchUpIntervals(deps, owner, (work) => comparisons.add(work));
      } finally {
        walking.delete(key);
      }
    },
  };
}
