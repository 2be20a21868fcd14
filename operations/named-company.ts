import { explainRefusal, findCompany } from '../activities/backfill/named-companies.ts';
import { isConfirmedCompany } from '../db/backfill/companies.ts';
import type { Database } from '../db/connection/connect.ts';
import type { ServiceClient } from '../service/client.ts';

/** Returns why a company that a person named cannot be read: the service does not have it; or undefined. */
export async function whyRefused(
  db: Database,
  service: Pick<ServiceClient, 'has' | 'page'>,
  companyId: string,
): Promise<string | undefined> {
  if (await isConfirmedCompany(db, companyId)) return undefined;
  return explainRefusal(companyId, await findCompany(service, companyId));
}
