import { createHash } from 'node:crypto';
import { type RecordResource, resources } from '../resources.ts';
import type { RecordPage } from './page.ts';

/** The version of the decoding in resources.ts: increase it to have every record written again. */
const decoding = 3;

/**
 * Returns digests in hex of a page's records: of their text and everything else that decides their
 * rows, except the company, because several may list them. Undefined if no company lists them, or
 * for tables without digests: only large tables keep them.
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
