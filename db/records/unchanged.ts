import { createHash } from 'node:crypto';
import { type RecordResource, resources } from '../resources.ts';
import type { RecordPage } from './page.ts';

/**
 * The version of resources.ts that wrote a row. Increase it when a record decodes to other values,
 * so that every record is written again.
 */
const decoding = 3;

/** Whether the rows of a resource have a digest of their record, as the rows of large tables do. */
export const keepsDigests = (resource: RecordResource): boolean =>
  resources[resource].table.digest !== undefined;

/**
 * Returns digests of a page's records in hex: of their text and of everything else that decides their rows.
 * The company that lists them is left out, because several may list them. Undefined if no company lists them.
 */
export function digestsOf(
  { companyId, apiVersion }: RecordPage,
  texts: readonly string[],
): string[] | undefined {
  if (companyId === null) return undefined;
  const context = JSON.stringify([decoding, apiVersion]);
  return texts.map((text) => createHash('sha256').update(context).update(text).digest('hex'));
}
