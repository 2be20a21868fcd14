import type { Executor } from '../connection/connect.ts';
import { type ListedRange, unequalReadings } from '../records/listed-readings.ts';
import type { Difference } from './compare-records.ts';

/** Compares a pass over a range of a meter with the warehouse. */
export async function compareListed(tx: Executor, listed: ListedRange): Promise<Difference[]> {
  const unequal = await unequalReadings(tx, listed);
  return unequal.map(({ id, listed, held }): Difference => {
    if (held === null) return { id, state: 'missing' };
    if (listed === null) return { id, state: 'extra' };
    const fields = (['usage', 'quality'] as const).flatMap((field) =>
      listed[field] === held[field]
        ? []
        : [{ field, service: listed[field], warehouse: held[field] }],
    );
    return { id, state: 'different', fields };
  });
}
