import { counted } from '../contract/words.ts';
import type { SumOfDeleted } from '../db/deletes/list-rows.ts';
import { amount } from './report/amounts.ts';

const things: Readonly<Record<string, readonly [string, string]>> = {
  companies: ['company', 'companies'],
  sites: ['site', 'sites'],
  connections: ['connection', 'connections'],
  meters: ['meter', 'meters'],
  documents: ['bill', 'bills'],
  usageData: ['row of usage', 'rows of usage'],
  intervals: ['reading', 'readings'],
};

/** Names a number of rows of a resource for people: `70 bills`. */
export const countedRows = (rows: number, resource: string): string => {
  const [one, many] = things[resource] ?? ['row', 'rows'];
  return counted(rows, one, many);
};

/** Says what rows add up to, and whether the service itself lists them as deleted. */
export function describeSum({ resource, rows, listedAsDeleted, cost, currency, state }: SumOfDeleted): string {
  const money = cost === null ? '' : `, ${amount(cost)} ${currency ?? 'in no currency'}`;
  const listed =
    listedAsDeleted === 0
      ? 'the service does not list them any more'
      : listedAsDeleted === rows
        ? `the service itself lists ${rows === 1 ? 'it' : `all ${rows.toLocaleString('en')}`} as deleted`
        : `the service itself lists ${listedAsDeleted.toLocaleString('en')} of them as deleted`;
  return `${countedRows(rows, resource)}${money}, ${state === 'quarantined' ? 'on hold' : state}: ${listed}`;
}
