import { countedRows } from '../contract/words.ts';
import type { SumOfDeleted } from '../db/deletes/list-rows.ts';
import { amount } from './report/amounts.ts';

/** Says what rows add up to, and whether the service itself lists them as deleted. */
export function describeSum({
  resource,
  rows,
  listedAsDeleted,
  cost,
  currency,
  state,
}: SumOfDeleted): string {
  const money = cost === null ? '' : `, ${amount(cost)} ${currency ?? 'in no currency'}`;
  const listed =
    listedAsDeleted === 0
      ? 'the service does not list them any more'
      : listedAsDeleted === rows
        ? `the service itself lists ${rows === 1 ? 'it' : `all ${rows.toLocaleString('en')}`} as deleted`
        : `the service itself lists ${listedAsDeleted.toLocaleString('en')} of them as deleted`;
  return `${countedRows(rows, resource)}${money}, ${state === 'quarantined' ? 'on hold' : state}: ${listed}`;
}
