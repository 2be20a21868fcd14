import { lookFor, refusalOf } from '../activities/backfill/named-companies.ts';
import { isKnownCompany } from '../db/backfill/strangers.ts';
import type { Database } from '../db/connect.ts';
import type { ServiceClient } from '../service/client.ts';

/**
 * Why a company that a person named cannot be read: the service does not have it. Undefined where the warehouse knows it, the
 * service shows it, or its answers do not tell; then the run finds out.
 */
export async function whyRefused(
  db: Database,
  service: Pick<ServiceClient, 'has' | 'page'>,
  companyId: string,
): Promise<string | undefined> {
  if (await isKnownCompany(db, companyId)) return undefined;
  return refusalOf(companyId, await lookFor(service, companyId));
}
