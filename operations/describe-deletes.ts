import { countedRows } from '../contract/words.ts';
import type { SumOfDeleted } from '../db/deletes/list-rows.ts';
import { amount } from './report/amounts.ts';

const states: Readonly<Record<string, string>> = {
  quarantined: 'held back',
  applied: 'deleted',
  rejected: 'kept',
  undone: 'restored and kept',
};

/** Says what has become of a deletion that a run found: a row is held back until somebody decides. */
export const deletionState = (state: string): string => states[state] ?? state;

/** Says what the service shows of a row that a run found missing. */
export const serviceSays = (listedAsDeleted: boolean): string =>
  listedAsDeleted ? 'listed as deleted' : 'not listed any more';

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
      ? `the service does not list ${rows === 1 ? 'it' : 'them'} any more`
      : listedAsDeleted === rows
        ? `the service itself lists ${rows === 1 ? 'it' : `all ${rows.toLocaleString('en')}`} as deleted`
        : `the service itself lists ${listedAsDeleted.toLocaleString('en')} of them as deleted`;
  return `${countedRows(rows, resource)}${money}, ${deletionState(state)}: ${listed}`;
}
