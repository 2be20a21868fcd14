import type { Endpoint } from '../contract/endpoints.ts';
import { isObject, parseExact } from '../contract/json.ts';
import { canonicalId } from '../contract/values.ts';
import { parse, type Received, unexpected } from './failures.ts';

/** One page of a listing (service.md 2.7). */
export interface Page {
  /** The answer without its secrets. Postgres reads this text, so that no number passes through a float. */
  readonly body: string;
  /** Key of the records in the envelope; null when the answer is a bare array. */
  readonly itemsKey: string | null;
  /** The records as JSON.parse reads them: never for writing, as their numbers are floats. */
  readonly items: readonly unknown[];
  /** The id of each record, with all digits, UUIDs in one spelling; null for a record without an id. */
  readonly ids: readonly (string | null)[];
  readonly count: number;
  /** The page number in the answer; the requested number if the answer has none. */
  readonly currentPage: number;
  readonly totalPages: number | null;
  /** Records across all pages; null if the answer has no total. */
  readonly total: number | null;
  readonly hasNext: boolean;
  /** Whether the answer says where the list ends. If not, it ends at an empty or repeated page. */
  readonly hasExplicitEnd: boolean;
}

/**
 * Reads a page. Its records are under the key of the catalogue, or else in the only array. The end is where
 * the service says; a short page does not end the listing.
 * @throws Failure SERVICE_ANSWER_UNREADABLE if there is no such array
 */
export function readPage(answer: Received, endpoint: Endpoint, asked: number): Page {
  const { text: body } = answer;
  const parsed = parse(answer);
  if (Array.isArray(parsed)) {
    return { ...records(body, null, parsed), ...onlyPage, total: parsed.length };
  }
  const key = isObject(parsed) ? keyOfRecords(parsed, endpoint) : undefined;
  if (!isObject(parsed) || key === undefined) {
    const wanted = endpoint.items === undefined ? 'one array of records' : `an array "${endpoint.items}"`;
    throw unexpected(wanted, answer, arraysOf(parsed));
  }
  const page = records(body, key, parsed[key] as unknown[]);
  return { ...page, ...envelope(parsed, endpoint, asked, page.count) };
}

/** A bare array is one page, whatever page was requested. */
const onlyPage = { currentPage: 1, totalPages: 1, hasNext: false, hasExplicitEnd: true } as const;

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

/** Ids as they are stored; null for an id with a zero byte, which Postgres cannot store. */
export function idsOf(items: readonly unknown[]): (string | null)[] {
  return items.map((item) =>
    isObject(item) && typeof item.id === 'string' && !item.id.includes('\0') ? canonicalId(item.id) : null,
  );
}

function keyOfRecords(envelope: Readonly<Record<string, unknown>>, endpoint: Endpoint): string | undefined {
  if (endpoint.items !== undefined && Array.isArray(envelope[endpoint.items])) return endpoint.items;
  const arrays = Object.keys(envelope).filter((key) => Array.isArray(envelope[key]));
  return arrays.length === 1 ? arrays[0] : undefined;
}

/** Names the arrays of an answer, if their keys look like names of fields; other keys may be data. */
function arraysOf(value: unknown): string {
  if (!isObject(value)) return 'it is not an object';
  const keys = Object.keys(value).filter((key) => Array.isArray(value[key]) && /^[A-Za-z_]{1,40}$/.test(key));
  return keys.length === 0 ? 'it has no array' : `it has the arrays ${keys.slice(0, 5).join(', ')}`;
}

function envelope(
  answer: Readonly<Record<string, unknown>>,
  endpoint: Endpoint,
  asked: number,
  count: number,
): Pick<Page, 'currentPage' | 'totalPages' | 'total' | 'hasNext' | 'hasExplicitEnd'> {
  // An empty list has no pages, so its first may be page 0.
  const currentPage = Math.max(integer(answer.currentPage) ?? asked, 1);
  const totalPages = integer(answer.totalPages);
  const hasNext = typeof answer.hasNext === 'boolean' ? answer.hasNext : undefined;
  return {
    currentPage,
    totalPages,
    total: totalOf(answer, endpoint),
    hasNext: hasNext ?? (totalPages === null ? count > 0 : currentPage < totalPages),
    hasExplicitEnd: hasNext !== undefined || totalPages !== null,
  };
}

/** Reads the total under the key of the catalogue, or else under the only `total…` next to `totalPages`. */
function totalOf(answer: Readonly<Record<string, unknown>>, endpoint: Endpoint): number | null {
  if (endpoint.total !== undefined && endpoint.total in answer) return integer(answer[endpoint.total]);
  const totals = Object.keys(answer).filter((key) => /^total([A-Z]|$)/.test(key) && key !== 'totalPages');
  return totals.length === 1 ? integer(answer[totals[0] ?? '']) : null;
}

function integer(value: unknown): number | null {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : null;
}
