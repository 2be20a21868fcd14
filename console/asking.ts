import type { Logger } from 'pino';
import type { Settings } from '../app/settings/settings.ts';
import type { TemporalPlace } from '../app/temporal/place.ts';
import { canonicalUuid } from '../contract/values.ts';
import type { Database, Executor } from '../db/connection/connect.ts';
import { companiesMeant } from '../db/read/find.ts';
import type { Away, Health } from '../health/measured.ts';
import type { Verdict } from '../health/verdict.ts';
import { readTimeOrAgo, timeOrAgoHasTo } from '../operations/time-or-ago.ts';
import { type Markup, visibleText } from '../web/parts.ts';
import type { ConsoleLink, Identify, Identity } from './access.ts';
import type { Page } from './frame.ts';

/** A request for a page. */
export interface Asking {
  readonly deps: ConsoleDependencies;
  readonly identity: Identity;
  readonly health: Health;
  readonly verdict: Verdict;
  /** Parts of the path that its pattern names, for example `id`. */
  readonly params: Readonly<Record<string, string>>;
  readonly query: URLSearchParams;
  /** Unix time in milliseconds. */
  readonly now: number;
}

/** Makes a page. Returns undefined if what the address names does not exist. */
export type MakePage = (asking: Asking) => Promise<Page | undefined>;

/** A parameter of the query without white space around it, or undefined if it is empty. */
export function asked(query: URLSearchParams, name: string): string | undefined {
  const value = query.get(name)?.trim() ?? '';
  // Postgres cannot store NUL characters.
  return value === '' || value.includes('\0') ? undefined : value.slice(0, 300);
}

/** A parameter of the query, or undefined if it is not one of the given words. */
export const oneOf = <T extends string>(
  query: URLSearchParams,
  name: string,
  words: readonly T[],
): T | undefined => words.find((word) => word === query.get(name));

export const mayAct = ({ identity }: Pick<Asking, 'identity'>): boolean => identity.role === 'operator';

/** What the console's pages need. */
export interface ConsoleDependencies {
  /** Read-only sessions, which all pages use. */
  readonly db: Database;
  /** Sessions for actions and for the log of operations. */
  readonly writer: Database;
  readonly settings: Settings;
  readonly temporal: TemporalPlace;
  /** Address of Temporal's web page; undefined if it is not known. */
  readonly temporalUi: string | undefined;
  /** Never rejects, and asks the servers at most every few seconds. */
  readonly readHealth: () => Promise<Health>;
  /** Asks whether Postgres is away; undefined if it is there. Never rejects, and waits only briefly. */
  readonly readAbsence: () => Promise<Away | undefined>;
  readonly identify: Identify;
  /** The link that opens the console; undefined behind a proxy, which signs users in. */
  readonly link: ConsoleLink | undefined;
  readonly log: Logger;
  /** Unix time in milliseconds. */
  readonly now: () => number;
}

/** What an action would do, before anybody confirms it. */
export interface Question {
  readonly title: string;
  /** How many records the action applies to, and its effect. */
  readonly says: string;
  /** The fields to fill in. */
  readonly fields?: Markup;
  readonly button: string;
  readonly danger?: boolean;
  /**
   * @param form the values that were filled in
   * @param operation id of the operation in the log
   * @returns what it did
   * @throws NotBegun if it does not apply to anything
   */
  readonly act: (form: URLSearchParams, operation: number) => Promise<string>;
}

/** Reads what an action would do. @throws NotBegun when there is nothing to do */
export type Ask = (asking: Asking) => Promise<Question>;

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
