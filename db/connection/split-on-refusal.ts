import { isRefusal } from './failures.ts';

/**
 * Processes all items together. If Postgres refuses a value, processes the halves, down to the items that it
 * refuses. These go to `refused`, and the others succeed. Returns the results of the parts, in order.
 */
export async function splitOnRefusal<T, R>(
  items: readonly T[],
  work: (items: readonly T[]) => Promise<R>,
  refused: (item: T, error: unknown) => R | Promise<R>,
): Promise<R[]> {
  try {
    return [await work(items)];
  } catch (error) {
    const [only] = items;
    if (!isRefusal(error) || only === undefined) throw error;
    if (items.length === 1) return [await refused(only, error)];
    const middle = Math.ceil(items.length / 2);
    const first = await splitOnRefusal(items.slice(0, middle), work, refused);
    return [...first, ...(await splitOnRefusal(items.slice(middle), work, refused))];
  }
}
