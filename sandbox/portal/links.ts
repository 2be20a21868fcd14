import { createHash } from 'node:crypto';
import type { Pool } from 'pg';
import { fromText, type Micros, secondsToMicros, toText } from '../timestamps.ts';

/** service.md 4, 8: how long a link to the webhook portal is valid. */
const linkLifetimeSeconds = 7 * 24 * 3600;

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

export interface OpenLink {
  readonly organizationId: string;
  readonly organization: string;
  readonly expiresAt: string;
}

export type LinkRefusal = 'unknown' | 'expired' | 'disabled';

/**
 * Returns the organization whose portal a token opens, or why it opens none: it does not exist, it is older
 * than 7 days (service.md 8), or webhooks are disabled (service.md 3.1).
 */
export async function examineLink(pool: Pool, token: string, now: Micros): Promise<OpenLink | LinkRefusal> {
  const { rows } = await pool.query<OpenLink & { enabled: boolean }>({
    name: 'examine link',
    text: `select o.id as "organizationId", o.name as organization, o.webhooks_enabled as enabled,
        to_char(l.expires_at, 'YYYY-MM-DD"T"HH24:MI:SS.US') as "expiresAt"
      from sandbox.portal_links l join sandbox.organizations o on o.id = l.organization_id
      where l.token_hash = $1`,
    values: [hashOf(token)],
  });
  const [link] = rows;
  if (link === undefined) return 'unknown';
  if (fromText(link.expiresAt) <= now) return 'expired';
  if (!link.enabled) return 'disabled';
  const { organizationId, organization, expiresAt } = link;
  return { organizationId, organization, expiresAt };
}
