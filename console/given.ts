import { canonicalUuid } from '../contract/values.ts';
import type { Executor } from '../db/connection/connect.ts';
import { companiesMeant } from '../db/read/find.ts';
import { readTimeOrAgo, timeOrAgoHasTo } from '../operations/time-or-ago.ts';
import { visibleText } from '../web/visible-text.ts';
import { asked, oneOf } from './asking.ts';

/** A value that somebody gave in an address or a field. */
export interface Given<T = string> {
  /** As it was given; undefined if nothing was given. */
  readonly given: string | undefined;
  /** What it means; undefined if nothing was given or if it is unusable. */
  readonly value: T | undefined;
  /** Why it is unusable, in one sentence. */
  readonly wrong?: string;
  /** What it means, in words. */
  readonly hint?: string | undefined;
}

export const givenText = (query: URLSearchParams, name: string): Given => {
  const given = asked(query, name);
  return { given, value: given };
};

export function givenWord<T extends string>(
  query: URLSearchParams,
  name: string,
  words: readonly T[],
): Given<T> {
  const given = asked(query, name);
  const value = oneOf(query, name, words);
  if (given === undefined || value !== undefined) return { given, value };
  return { given, value, wrong: `It must be one of ${words.join(', ')}.` };
}

/** A time or how long ago it was, as the command reads it. A time without a zone is in UTC. */
export function givenTime(query: URLSearchParams, name: string, now: number): Given {
  const given = asked(query, name);
  if (given === undefined) return { given, value: undefined };
  const time = readTimeOrAgo(given, now);
  if (time === undefined) return { given, value: undefined, wrong: timeOrAgoHasTo };
  const hasZone = /Z$|[T ].*[+-]\d\d(:?\d\d)?$/i.test(time);
  const isDay = time.length === 'YYYY-MM-DD'.length;
  return { given, value: hasZone ? time : isDay ? `${time}T00:00:00Z` : `${time}Z` };
}

/** How many companies the reason lists if several have the name. */
const listedMax = 5;

/** The id of a company, which may be given by its id, by the customer's own id, or by a part of its name. */
export async function givenCompany(query: URLSearchParams, name: string, db: Executor): Promise<Given> {
  const given = asked(query, name);
  if (given === undefined) return { given, value: undefined };
  const found = await companiesMeant(db, given);
  const exact = found.filter(({ isExact }) => isExact);
  const [only, ...rest] = exact.length > 0 ? exact : found;
  if (only === undefined) {
    // An event may name a company that the warehouse does not have.
    const value = canonicalUuid(given);
    if (value !== undefined) return { given, value, hint: 'Not in the warehouse' };
    return { given, value, wrong: 'No company has this name or id.' };
  }
  if (rest.length === 0) {
    const its = visibleText(only.name ?? 'a company without a name');
    return { given, value: only.id, hint: its };
  }
  const all = [only, ...rest];
  const isAmbiguous = (name: string | null) => all.filter((company) => company.name === name).length > 1;
  const meant = all.map(({ id, name }) =>
    isAmbiguous(name) ? `${visibleText(name ?? 'no name')} (${id})` : visibleText(name ?? id),
  );
  const others = meant.length > listedMax ? ['others'] : [];
  const listed = new Intl.ListFormat('en').format([...meant.slice(0, listedMax), ...others]);
  return {
    given,
    value: undefined,
    wrong: `Several companies are meant: ${listed}. Give more of the name, or the id.`,
  };
}

/** The values of a filter, by their names in the address. */
export type GivenValues = Readonly<Record<string, Given>>;

export const isGiven = (values: GivenValues): boolean =>
  Object.values(values).some(({ given }) => given !== undefined);

/** The values as they were given, for the address of another page. */
export const asGiven = (values: GivenValues): Record<string, string | undefined> =>
  Object.fromEntries(Object.entries(values).map(([name, { given }]) => [name, given]));

/** Says what is wrong with each unusable value: `Since “yesterday”: It must be a time.` */
export const wrongOf = (values: GivenValues): string[] =>
  Object.entries(values).flatMap(([name, { given, wrong }]) =>
    wrong === undefined
      ? []
      : [`${name.charAt(0).toUpperCase()}${name.slice(1)} “${visibleText(given ?? '')}”: ${wrong}`],
  );
