import { randomBytes } from 'node:crypto';
import type { Pool } from 'pg';
import { inTransaction } from './database.ts';
import { Problem } from './problem.ts';

/** Maps keys to the ids of their organizations. Only this process issues keys, so they are read once. */
export type ApiKeys = Map<string, string>;

/** Draws a key that nobody can guess, because anyone on this machine could open the webhook portal with it. */
export const newApiKey = (): string => `uds_${randomBytes(16).toString('hex')}`;

export interface Organization {
  readonly id: string;
  readonly name: string;
  /** The first of its keys. */
  readonly apiKey: string;
}

export async function readOrganizations(pool: Pool): Promise<Organization[]> {
  const { rows } = await pool.query<Organization>(`select o.id, o.name, k.key as "apiKey"
    from sandbox.organizations o cross join lateral (select key from sandbox.api_keys
      where organization_id = o.id order by position limit 1) k order by o.position`);
  return rows;
}

export async function readApiKeys(pool: Pool): Promise<ApiKeys> {
  const { rows } = await pool.query<{ key: string; id: string }>(
    'select key, organization_id as id from sandbox.api_keys',
  );
  return new Map(rows.map(({ key, id }) => [key, id]));
}

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
