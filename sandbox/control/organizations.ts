import type { Pool } from 'pg';
import type { Organization } from '../api/keys.ts';
import { inTransaction } from '../database/transaction.ts';

/** A new organization with one key; webhooks are off (seed 2.1). */
export function addOrganization(pool: Pool, organization: Organization): Promise<void> {
  return inTransaction(pool, async (client) => {
    await client.query('insert into sandbox.organizations (id, name) values ($1, $2)', [
      organization.id,
      organization.name,
    ]);
    await client.query('insert into sandbox.api_keys (key, organization_id) values ($1, $2)', [
      organization.apiKey,
      organization.id,
    ]);
  });
}
