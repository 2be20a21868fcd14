import { proxyActivities, proxyLocalActivities } from '@temporalio/workflow';
import type { Activities } from '../activities/create-activities.ts';
import { taskQueues } from '../contract/names.ts';

/**
 * All timeouts and retries of the workflows. Permanent failures are marked non-retryable (see the failure
 * catalogue), so everything retried here can succeed later.
 */

/**
 * First try of short work on the warehouse: within the workflow task, 1.3 times as fast as a remote activity.
 */
export const quickLocal = proxyLocalActivities<Activities>({
  startToCloseTimeout: '8 seconds',
  retry: { maximumAttempts: 2, initialInterval: '50 milliseconds' },
});

/** The same work when the warehouse fails: retried until it succeeds, as no event may be lost. */
export const quickUnlimited = proxyActivities<Activities>({
  taskQueue: taskQueues.events,
  startToCloseTimeout: '1 minute',
  retry: { initialInterval: '500 milliseconds', backoffCoefficient: 2, maximumInterval: '30 seconds' },
});

/** Reading the records that events named. */
export const catchingUp = proxyActivities<Activities>({
  taskQueue: taskQueues.events,
  startToCloseTimeout: '1 hour',
  heartbeatTimeout: '30 seconds',
  retry: { initialInterval: '1 second', backoffCoefficient: 2, maximumInterval: '1 minute' },
});

/**
 * Reading a company to its end: retried for about an hour, each time from the page after the last one
 * written. A worker that is killed uses up an attempt, too.
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

/** For work that the next run repeats: it fails sooner than a backfill. */
const fewRetries = {
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
  retry: fewRetries,
});

/**
 * Checking the data, on a queue of its own, so that no backfill delays it. Earlier versions scheduled it on
 * the backfill queue, so workers serve it there, too.
 */
export const checking = proxyActivities<Activities>({
  taskQueue: taskQueues.checks,
  startToCloseTimeout: '6 hours',
  heartbeatTimeout: '30 seconds',
  retry: fewRetries,
});

/** Writing the state of a run. */
export const noting = proxyActivities<Activities>({
  taskQueue: taskQueues.backfill,
  startToCloseTimeout: '30 seconds',
  retry: { initialInterval: '500 milliseconds', backoffCoefficient: 2, maximumInterval: '30 seconds' },
});

/**
 * Owners that one catch-up activity serves, activities at once, and rounds before it continues as new. An
 * idle catch-up lingers, as Temporal refuses to start a workflow id again within a second.
 */
export const catchUpBounds = {
  ownersPerChunk: 8,
  chunksAtOnce: 4,
  roundsPerRun: 400,
  lingerMs: 20_000,
} as const;

/**
 * Companies in backfill at once; small companies that one activity reads, one after the other; and companies
 * that one run of backfillAll reads before it continues as new.
 */
export const backfillBounds = { companiesAtOnce: 8, companiesTogether: 25, companiesPerRun: 200 } as const;

/** Waiting while another run reads a company: activity retries, however many, add nothing to the history. */
export const waiting = proxyActivities<Activities>({
  taskQueue: taskQueues.backfill,
  startToCloseTimeout: '30 seconds',
  scheduleToCloseTimeout: '2 hours',
  retry: { initialInterval: '1 second', backoffCoefficient: 1.5, maximumInterval: '15 seconds' },
});
