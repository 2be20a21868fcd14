import { limits } from './limits.ts';
import type { RunKind } from './names.ts';

/** Begins a sentence with a capital letter. */
export const capitalized = (words: string): string => words.charAt(0).toUpperCase() + words.slice(1);

/** Formats a count: `1 bill`, `2 bills`, `0 companies`. */
export const counted = (count: number, one: string, many = `${one}s`): string =>
  `${count.toLocaleString('en')} ${count === 1 ? one : many}`;

/** Chooses the verb for a count: `is` for one thing, otherwise `are`. */
export const agreeing = (count: number, one: string, many: string): string => (count === 1 ? one : many);

/** Formats a count that a report stopped at `max`: `12`, `10,000+`. */
export const countInWords = (count: number, max: number = limits.countMax): string =>
  count > max ? `${max.toLocaleString('en')}+` : count.toLocaleString('en');

/** Formats a count of things that a report stopped at `limits.countMax`: `1 bill`, `10,000+ bills`. */
export const countedToMax = (count: number, one: string, many = `${one}s`): string =>
  `${countInWords(count)} ${count === 1 ? one : many}`;

/** Formats a count of dead or missing events that stopped at `limits.givenUpMax`. */
export const eventsGivenUp = (count: number): string =>
  `${countInWords(count, limits.givenUpMax)} ${count === 1 ? 'event' : 'events'}`;

/** Turns `usageData` of code, or `usage_data` of a table, into words for people. */
export const nameInWords = (name: string): string =>
  name.replaceAll('_', ' ').replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);

const things: Readonly<Record<string, readonly [string, string]>> = {
  companies: ['company', 'companies'],
  sites: ['site', 'sites'],
  connections: ['connection', 'connections'],
  meters: ['meter', 'meters'],
  documents: ['bill', 'bills'],
  usageData: ['row of usage', 'rows of usage'],
  intervals: ['reading', 'readings'],
};

/** Formats a number of rows of a resource: `70 bills`, `10,000+ readings`. */
export const countedRows = (rows: number, resource: string): string => {
  const [one, many] = things[resource] ?? ['row', 'rows'];
  return countedToMax(rows, one, many);
};

/** The end of each reason for which a run is suspect until somebody decides on deletions. */
export const untilDecided = 'deletion is held back (metersync deletes list)';
/** Wordings of earlier versions, which runs in the warehouse may still have. */
const formerly = [
  'deletion is on hold (metersync deletes list)',
  'quarantined until somebody decides (metersync deletes list)',
];

/** Whether a reason only waits until somebody decides on deletions. */
export const isUntilDecided = (reason: string): boolean =>
  [untilDecided, ...formerly].some((words) => reason.endsWith(words));

/** A Postgres pattern that matches an error if each of its reasons ends with one of these wordings. */
export const onlyUntilDecided = `^([^;]*(${[untilDecided, ...formerly].map((words) => words.replace(/[()]/g, '[$&]')).join('|')})(; |$))+$`;

/** Makes the label of a value: `record` for `recordId`, `received` for `receivedAt`. */
export const label = (name: string): string => nameInWords(name).replace(/ (id|at)$/, '');

/** What people call a run. */
export const wordOfRun: Readonly<Record<RunKind, string>> = { full: 'backfill', reconcile: 'reconcile' };
