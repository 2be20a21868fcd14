import type { Endpoint } from '../contract/endpoints.ts';
import { canonicalId } from '../contract/ids.ts';
import { isObject, parseExact } from './json.ts';
import { parse, type Received, unexpected } from './unreadable.ts';

/** One page of a listing (seed 2.7). */
export interface Page {
  /** The answer as it was received, less its secrets: what Postgres reads, so that no number passes through a float. */
  readonly body: string;
  /** Key of the records in the envelope; null when the answer is a bare array. */
  readonly itemsKey: string | null;
  /**
   * The records as JSON.parse reads them: for looking at, never for writing, as their numbers are floats.
   */
  readonly items: readonly unknown[];
  /** Id of each record, in order, with all its digits, a UUID in one spelling; null for a record without one. */
  readonly ids: readonly (string | null)[];
  readonly count: number;
  /** The page that the service says it answered with; the page asked for when it doesn't say. */
  readonly currentPage: number;
  readonly totalPages: number | null;
  /** Records across all pages; null when the service doesn't say. */
  readonly total: number | null;
  readonly hasNext: boolean;
  /**
   * Whether the service told where the list ends (`hasNext`, or `totalPages`). If not, `hasNext` only says that
   * this page held something, and the list ends at an empty or repeated page.
   */
  readonly endSaid: boolean;
  readonly perPage: number | null;
}

/**
 * Reads a page, tolerant of what an envelope lacks: all it needs is the array of records, under the key that
 * the catalogue names or, failing that, as the only array there is. `hasNext` is the service's word; a short
 * page means nothing.
 * @throws Failure SERVICE_ANSWER_UNREADABLE when there is no such array
 */
export function readPage(answer: Received, endpoint: Endpoint, asked: number): Page {
  const { text: body } = answer;
  const parsed = parse(answer);
  if (Array.isArray(parsed)) {
    return { ...records(body, null, parsed), ...whole, total: parsed.length };
  }
  const key = isObject(parsed) ? keyOfRecords(parsed, endpoint) : undefined;
  if (!isObject(parsed) || key === undefined) {
    const wanted = endpoint.items === undefined ? 'one array of records' : `an array "${endpoint.items}"`;
    throw unexpected(wanted, answer, arraysOf(parsed));
  }
  const page = records(body, key, parsed[key] as unknown[]);
  return { ...page, ...envelope(parsed, endpoint, asked, page.count) };
}

/** A bare array is one page, whichever was asked for. */
const whole = { currentPage: 1, totalPages: 1, hasNext: false, endSaid: true, perPage: null } as const;

const idKey: ReadonlySet<string> = new Set(['id']);

function records(body: string, itemsKey: string | null, items: readonly unknown[]) {
  const numbered = items.some((item) => isObject(item) && typeof item.id === 'number');
  const ids = numbered ? idsOf(exactItems(body, itemsKey)) : idsOf(items);
  return { body, itemsKey, items, ids, count: items.length };
}

function exactItems(body: string, itemsKey: string | null): readonly unknown[] {
  const parsed = parseExact(body, idKey);
  return (itemsKey === null ? parsed : (parsed as Record<string, unknown>)[itemsKey]) as unknown[];
}

function idsOf(items: readonly unknown[]): (string | null)[] {
  return items.map((item) => (isObject(item) && typeof item.id === 'string' ? canonicalId(item.id) : null));
}

function keyOfRecords(envelope: Readonly<Record<string, unknown>>, endpoint: Endpoint): string | undefined {
  if (endpoint.items !== undefined && Array.isArray(envelope[endpoint.items])) return endpoint.items;
  const arrays = Object.keys(envelope).filter((key) => Array.isArray(envelope[key]));
  return arrays.length === 1 ? arrays[0] : undefined;
}

/** Which arrays an answer has instead, by names that are words: a field's name, and no key of a map. */
function arraysOf(value: unknown): string {
  if (!isObject(value)) return 'it is no object';
  const keys = Object.keys(value).filter((key) => Array.isArray(value[key]) && /^[A-Za-z_]{1,40}$/.test(key));
  return keys.length === 0 ? 'it has no array' : `it has the arrays ${keys.slice(0, 5).join(', ')}`;
}

function envelope(
  said: Readonly<Record<string, unknown>>,
  endpoint: Endpoint,
  asked: number,
  count: number,
): Pick<Page, 'currentPage' | 'totalPages' | 'total' | 'hasNext' | 'endSaid' | 'perPage'> {
  // An empty list has no pages, and its first may call itself 0.
  const currentPage = Math.max(integer(said.currentPage) ?? asked, 1);
  const totalPages = integer(said.totalPages);
  const hasNext = typeof said.hasNext === 'boolean' ? said.hasNext : undefined;
  return {
    currentPage,
    totalPages,
    total: totalOf(said, endpoint),
    hasNext: hasNext ?? (totalPages === null ? count > 0 : currentPage < totalPages),
    endSaid: hasNext !== undefined || totalPages !== null,
    perPage: integer(said.perPage),
  };
}

/** Under the key of the catalogue or, failing that, as the only `total…` there is beside `totalPages`. */
function totalOf(said: Readonly<Record<string, unknown>>, endpoint: Endpoint): number | null {
  if (endpoint.total !== undefined && endpoint.total in said) return integer(said[endpoint.total]);
  const totals = Object.keys(said).filter((key) => /^total([A-Z]|$)/.test(key) && key !== 'totalPages');
  return totals.length === 1 ? integer(said[totals[0] ?? '']) : null;
}

function integer(value: unknown): number | null {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : null;
}
