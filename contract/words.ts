/** How people name and count things. */

/** A number and what it counts: `1 bill`, `2 bills`, `0 companies`. */
export const counted = (count: number, one: string, many = `${one}s`): string =>
  `${count.toLocaleString('en')} ${count === 1 ? one : many}`;

/** The one name that people have for what code calls `usageData` and a table `usage_data`. */
export const nameInWords = (name: string): string =>
  name.replaceAll('_', ' ').replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);

/** What a person reads before a value: `record` of `recordId`, `received` of `receivedAt`. */
export const label = (name: string): string => nameInWords(name).replace(/ (id|at)$/, '');
