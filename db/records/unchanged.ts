import { createHash } from 'node:crypto';
import { type RecordResource, resources } from '../resources.ts';
import type { RecordPage } from './page.ts';

/**
 * The version of the decoding in resources.ts. Increase it if records decode to other values than
 * before, so that every record is written again.
 */
const decoding = 3;

/**
 * Returns digests of a page's records in hex: of their text and of everything else that decides
 * their rows. The company that lists them is left out, because several may list them. Returns
 * undefined if no company lists them, or if the table keeps no digests: only large tables keep
 * them.
 */
export function digestsOf(
  resource: RecordResource,
  { companyId, apiVersion }: RecordPage,
  texts: readonly string[],
): string[] | undefined {
  if (companyId === null || resources[resource].table.digest === undefined) return undefined;
  const context = JSON.stringify([decoding, apiVersion]);
  return texts.map((text) => createHash('sha256').update(context).update(text).digest('hex'));
}
