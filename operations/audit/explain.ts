import type { Executor } from '../../db/connection/connect.ts';
import { eventsBehind, refusals } from '../../db/read/behind-differences.ts';
import { listingOf } from './listing.ts';
import type { Example } from './report.ts';

/** Returns examples with the events behind them, and Postgres's reasons for refused records. */
export async function explain(db: Executor, examples: readonly Example[]): Promise<Example[]> {
  const recordOf = ({ id, resource }: Example) => (resource === 'intervals' ? id.replace(/@[^@]*$/, '') : id);
  const events = await eventsBehind(db, [...new Set(examples.map(recordOf))]);
  // Sites are part of the record of their company, so they are refused with it.
  const refusalOf = ({ id, resource }: Example) => ({ id, resource: listingOf(resource) });
  const missing = examples.filter(({ state }) => state === 'missing');
  const refused = await refusals(db, missing.map(refusalOf));
  return examples.map((example) => {
    const { resource, id } = refusalOf(example);
    return {
      ...example,
      events: events.get(recordOf(example)) ?? [],
      refused: refused.get(`${resource} ${id}`),
    };
  });
}
