import { isCancellation } from '@temporalio/workflow';

/** Does short work within the workflow task, and where that fails as an activity that is tried until it succeeds. */
export async function localFirst<T>(fast: () => Promise<T>, patiently: () => Promise<T>): Promise<T> {
  try {
    return await fast();
  } catch (error) {
    // Whatever it was (a local activity's failure comes as it is, wrapped in nothing): it has to be done.
    if (isCancellation(error)) throw error;
    return await patiently();
  }
}
