import { createHash } from 'node:crypto';
import type { Pool } from 'pg';
import { type Micros, secondsToMicros, toText } from '../timestamps.ts';

/** Seed 4, 8: how long a link to the webhook portal opens. */
export const linkLifetimeSeconds = 7 * 24 * 3600;

const hashOf = (token: string): string => createHash('sha256').update(token).digest('hex');

export async function createLink(
  pool: Pool,
  organizationId: string,
  token: string,
  now: Micros,
): Promise<void> {
  await pool.query(
    'insert into sandbox.portal_links (token_hash, organization_id, expires_at) values ($1, $2, $3)',
    [hashOf(token), organizationId, toText(now + secondsToMicros(linkLifetimeSeconds))],
  );
}

/**
 * The organization whose portal a token opens. Undefined when it is unknown, older than 7 days, or while webhooks
 * are disabled (seed 3.1): links made before are inaccessible as well.
 */
export async function openLink(pool: Pool, token: string, now: Micros): Promise<string | undefined> {
  const { rows } = await pool.query<{ id: string }>(
    `select o.id from sandbox.portal_links l join sandbox.organizations o on o.id = l.organization_id
      where l.token_hash = $1 and l.expires_at > $2::timestamp and o.webhooks_enabled`,
    [hashOf(token), toText(now)],
  );
  return rows[0]?.id;
}
