import type { Health } from '../health/measured.ts';
import type { Verdict } from '../health/verdict.ts';
import type { ConsoleDependencies } from './dependencies.ts';
import type { Page } from './frame.ts';
import type { Identity } from './identity.ts';

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
