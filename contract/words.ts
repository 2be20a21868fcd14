/** Names and counts for people. */

/** Formats a count: `1 bill`, `2 bills`, `0 companies`. */
export const counted = (count: number, one: string, many = `${one}s`): string =>
  `${count.toLocaleString('en')} ${count === 1 ? one : many}`;

/** Turns `usageData` of code, or `usage_data` of a table, into the words of people. */
export const nameInWords = (name: string): string =>
  name.replaceAll('_', ' ').replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);

/** Makes the label of a value: `record` for `recordId`, `received` for `receivedAt`. */
export const label = (name: string): string => nameInWords(name).replace(/ (id|at)$/, '');
