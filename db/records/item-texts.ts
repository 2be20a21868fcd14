import { JsonTokens } from '../../contract/json.ts';
import type { RecordPage } from './page.ts';

/**
 * Cuts out the exact text of each record of a page (valid JSON), in order. In Postgres, an escape
 * that it cannot hold (NUL, a lone surrogate) would make the whole page unreadable.
 */
export function itemTexts({
  body,
  itemsKey,
  joined = false,
}: Pick<RecordPage, 'body' | 'itemsKey' | 'joined'>): string[] {
  if (itemsKey === '' && !joined) return [body];
  const pageDepth = joined ? 2 : 1;
  const itemsDepth = itemsKey === '' ? 1 : itemsKey === null ? pageDepth : pageDepth + 1;
  const tokens = new JsonTokens(body);
  const texts: string[] = [];
  let isItems = !itemsKey;
  let ofEarlierPages = 0;
  let from = 0;
  while (tokens.next()) {
    const { kind, depth } = tokens;
    if (kind === 'name' && depth === pageDepth && itemsKey) {
      isItems = tokens.name === itemsKey;
      // As in JSON.parse, the last of several members with the same name counts.
      if (isItems) texts.length = ofEarlierPages;
    }
    if (kind === 'close' && depth < pageDepth) ofEarlierPages = texts.length;
    if (kind === 'open' && depth === itemsDepth + 1) from = tokens.from;
    if (!isItems || depth !== itemsDepth || kind === 'open' || kind === 'comma') continue;
    texts.push(body.slice(kind === 'close' ? from : tokens.from, tokens.to));
  }
  return texts;
}

/** Builds a page that has only these records, with their digests. */
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
