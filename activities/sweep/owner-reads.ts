import type { Queue } from '../../contract/names.ts';
import type { DueRecords } from '../../db/queue/due.ts';
import { queueName } from '../../db/queue/queue.ts';
import type { ServiceClient } from '../../service/client.ts';
import type { Lane } from '../../service/throttle.ts';
import type { ActivityDependencies } from '../dependencies.ts';
import { catchUpConnections } from './connections.ts';
import { catchUpDocuments, type DueReading } from './documents.ts';
import { catchUpIntervals } from './intervals.ts';

/** How records of an owner are read. */
export interface OwnerReading extends Partial<DueReading> {
  /** The records to read, instead of those that are due. */
  readonly records?: DueRecords;
}

/** Reads the records of owners. The drains and the sweep of a process share one. */
export interface OwnerReads {
  /** Returns whether so many records are due that the owner needs a read of its own, with `walks`. */
  read(queue: Queue, how?: OwnerReading): Promise<{ readonly isLarge: boolean }>;
  /** Whether this process now reads records of the owner that have no endpoint of their own. */
  isWalking(queue: Queue): boolean;
}

export function createOwnerReads(dependencies: ActivityDependencies): OwnerReads {
  const deps = { ...dependencies, warehouse: dependencies.catchingUp };
  const draining = { ...deps, service: inDrainLane(deps.service) };
  const walking = new Set<string>();
  return {
    isWalking: (queue) => walking.has(queueName(queue)),
    read: async (queue, { records, probe = 0, walks = false } = {}) => {
      const { kind, owner } = queue;
      const key = queueName(queue);
      if (kind !== 'documents' || !deps.service.has('document')) walking.add(key);
      try {
        const using = records === undefined ? deps : draining;
        if (kind === 'documents') return await catchUpDocuments(using, owner, { probe, walks }, records);
        if (kind === 'connections') await catchUpConnections(using, owner, probe, records);
        else await catchUpIntervals(deps, owner);
        return { isLarge: false };
      } finally {
        walking.delete(key);
      }
    },
  };
}

/** The client of a drain: its reads are sent before those of the sweep, because it ends after a few seconds. */
const inDrainLane = (service: ServiceClient): ServiceClient => {
  const laneOf = (lane: Lane): Lane => (lane === 'live' ? 'drain' : lane);
  return {
    ...service,
    page: (request) => service.page({ ...request, lane: laneOf(request.lane) }),
    record: (request) => service.record({ ...request, lane: laneOf(request.lane) }),
  };
};
