import type { Pool } from 'pg';
import type { Organization } from '../api/keys.ts';
import { inTransaction } from '../database/transaction.ts';
import { Problem } from '../problem.ts';

/** A new organization with one key; webhooks are off (service.md 2.1). @throws Problem 409 for a key that is in use */
export function addOrganization(pool: Pool, organization: Organization): Promise<void> {
  return inTransaction(pool, async (client) => {
    await client.query('insert into sandbox.organizations (id, name) values ($1, $2)', [
      organization.id,
      organization.name,
    ]);
    const { rowCount } = await client.query(
      'insert into sandbox.api_keys (key, organization_id) values ($1, $2) on conflict do nothing',
      [organization.apiKey, organization.id],
    );
    if (rowCount === 0) throw new Problem(409, 'This API key is in use.');
  });
}
