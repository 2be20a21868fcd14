import { elementTexts, memberText } from '../../contract/exact-json.ts';
import type { RecordPage } from './page.ts';

/**
 * Cuts out the exact text of each record of a page, in order. Postgres cannot: to find a key it
 * reads every escape before it. An escape that it cannot hold (NUL, a lone surrogate) makes the
 * whole page unreadable. The body must be valid JSON.
 */
export function itemTexts({
  body,
  itemsKey,
  joined = false,
}: Pick<RecordPage, 'body' | 'itemsKey' | 'joined'>): string[] {
  const bodies = joined ? elementTexts(body) : [body];
  if (itemsKey === '') return bodies;
  return bodies.flatMap((text) =>
    elementTexts(itemsKey === null ? text : (memberText(text, itemsKey) ?? '[]')),
  );
}

/** Builds the page with these records alone, and their digests. */
export const pageOfTexts = (
  page: RecordPage,
  texts: readonly string[],
  digests?: readonly string[],
): RecordPage => ({
  ...page,
  body: `[${texts.join(',')}]`,
  itemsKey: null,
  joined: false,
  digests,
});
