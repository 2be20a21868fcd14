import { isCancellation } from '@temporalio/workflow';

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
