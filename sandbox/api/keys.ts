import type { Pool } from 'pg';

/** Which organization a key belongs to. Keys are read once: nothing issues them while the sandbox runs. */
export type ApiKeys = ReadonlyMap<string, string>;

export interface Organization {
  readonly id: string;
  readonly name: string;
  readonly apiKey: string;
}

export async function readOrganizations(pool: Pool): Promise<Organization[]> {
  const { rows } = await pool.query<Organization>(`select o.id, o.name, k.key as "apiKey"
    from sandbox.organizations o join sandbox.api_keys k on k.organization_id = o.id order by o.position, k.key`);
  return rows;
}
