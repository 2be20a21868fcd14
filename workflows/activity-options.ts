import { isCancellation, proxyActivities, proxyLocalActivities } from '@temporalio/workflow';
import type { Activities } from '../activities/create-activities.ts';
import { taskQueues } from '../contract/names.ts';
import { activityPolicy } from '../contract/retry-policy.ts';

/** How the workflows call activities: on which queue, with which time-outs and retries. */

const { events, backfill, checks, watch } = taskQueues;

export const quickLocal = proxyLocalActivities<Activities>(activityPolicy.quickLocal);
export const quickUnlimited = proxyActivities<Activities>({
  taskQueue: events,
  ...activityPolicy.quickUnlimited,
});
/** On its own queue, because activities that hang in a silent Postgres must not delay the watch. */
export const looking = proxyActivities<Activities>({ taskQueue: watch, ...activityPolicy.eachMinute });
/** Not retried: the next minute's run does the same work again. */
export const eachMinute = proxyActivities<Activities>({
  taskQueue: events,
  ...activityPolicy.eachMinute,
});
export const sweeping = proxyActivities<Activities>({ taskQueue: events, ...activityPolicy.sweeping });
/** Of workflows of version 0.2: see activities/sweep/sweep.ts. */
export const catchingUp = proxyActivities<Activities>({ taskQueue: events, ...activityPolicy.sweeping });
export const starting = proxyActivities<Activities>({ taskQueue: backfill, ...activityPolicy.starting });
export const reading = proxyActivities<Activities>({ taskQueue: backfill, ...activityPolicy.reading });
export const recurring = proxyActivities<Activities>({ taskQueue: backfill, ...activityPolicy.recurring });
export const noting = proxyActivities<Activities>({ taskQueue: backfill, ...activityPolicy.noting });
/** On a queue of their own, so that no backfill delays them. */
export const checking = proxyActivities<Activities>({ taskQueue: checks, ...activityPolicy.checking });

/** Runs short work as a local activity; if that fails, as an activity that is retried until it succeeds. */
export async function localFirst<T>(fast: () => Promise<T>, patiently: () => Promise<T>): Promise<T> {
  try {
    return await fast();
  } catch (error) {
    // Every other failure counts: local activities throw errors unwrapped, and the work has to be done.
    if (isCancellation(error)) throw error;
    return await patiently();
  }
}
