import { proxyActivities, proxyLocalActivities } from '@temporalio/workflow';
import type { Activities } from '../activities/create-activities.ts';
import { taskQueues } from '../contract/names.ts';

/**
 * All timeouts and retries of the workflows. What fails for good says so itself (see the catalogue of failures), so
 * whatever is retried here can succeed later.
 */

/** First try of short work on the warehouse: within the workflow task, 1.3 times as fast as a remote activity. */
export const quickLocal = proxyLocalActivities<Activities>({
  startToCloseTimeout: '8 seconds',
  retry: { maximumAttempts: 2, initialInterval: '50 milliseconds' },
});

/** The same work when the warehouse is in trouble: tried until it succeeds, for no event may be lost. */
export const quickUnlimited = proxyActivities<Activities>({
  taskQueue: taskQueues.events,
  startToCloseTimeout: '1 minute',
  retry: { initialInterval: '500 milliseconds', backoffCoefficient: 2, maximumInterval: '30 seconds' },
});

/** Reading again what events told of. */
export const catchingUp = proxyActivities<Activities>({
  taskQueue: taskQueues.events,
  startToCloseTimeout: '1 hour',
  heartbeatTimeout: '30 seconds',
  retry: { initialInterval: '1 second', backoffCoefficient: 2, maximumInterval: '1 minute' },
});

/**
 * Reading a company to its end: tried again for about an hour without success, each time from the page after the last
 * that was written. A worker that is killed costs a try as well.
 */
export const backfilling = proxyActivities<Activities>({
  taskQueue: taskQueues.backfill,
  startToCloseTimeout: '12 hours',
  heartbeatTimeout: '30 seconds',
  retry: {
    initialInterval: '2 seconds',
    backoffCoefficient: 2,
    maximumInterval: '2 minutes',
    maximumAttempts: 36,
  },
});

/** Of what the next run does again: given up sooner than a backfill is. */
const givenUpSooner = {
  initialInterval: '2 seconds',
  backoffCoefficient: 2,
  maximumInterval: '2 minutes',
  maximumAttempts: 6,
} as const;

/** Reconciling. */
export const recurring = proxyActivities<Activities>({
  taskQueue: taskQueues.backfill,
  startToCloseTimeout: '1 hour',
  heartbeatTimeout: '30 seconds',
  retry: givenUpSooner,
});

/**
 * Looking at the data, on a queue of its own: it takes its turn, whatever else there is to do. An activity that an earlier
 * version scheduled is on the queue of backfills, where workers know it as well.
 */
export const checking = proxyActivities<Activities>({
  taskQueue: taskQueues.checks,
  startToCloseTimeout: '6 hours',
  heartbeatTimeout: '30 seconds',
  retry: givenUpSooner,
});

/** Notes about a run. */
export const noting = proxyActivities<Activities>({
  taskQueue: taskQueues.backfill,
  startToCloseTimeout: '30 seconds',
  retry: { initialInterval: '500 milliseconds', backoffCoefficient: 2, maximumInterval: '30 seconds' },
});

/**
 * Owners that one catch-up activity serves, activities at once, and rounds before it continues as new. It lingers
 * when it has nothing to do, as Temporal refuses to start a workflow id again within a second.
 */
export const catchUpBounds = {
  ownersPerChunk: 8,
  chunksAtOnce: 4,
  roundsPerRun: 400,
  lingerMs: 20_000,
} as const;

/**
 * Companies in backfill at once; companies that one activity reads, one after the other, as long as they are small; and
 * companies that one run of backfillAll reads before it continues as new.
 */
export const backfillBounds = { companiesAtOnce: 8, companiesTogether: 25, companiesPerRun: 200 } as const;

/** A company that another run is reading is waited for: tries leave nothing in the history, however many. */
export const waiting = proxyActivities<Activities>({
  taskQueue: taskQueues.backfill,
  startToCloseTimeout: '30 seconds',
  scheduleToCloseTimeout: '2 hours',
  retry: { initialInterval: '1 second', backoffCoefficient: 1.5, maximumInterval: '15 seconds' },
});
