import type { Pool } from 'pg';
import type { MessageStatus } from '../views/status.ts';

/** Which messages are asked for. Null means any. */
export interface MessageFilter {
  readonly type: string | null;
  readonly status: MessageStatus | null;
  /** Statuses are for this endpoint only, and messages that it did not choose are left out. */
  readonly endpointId: string | null;
  readonly from: string | null;
  readonly until: string | null;
}

export interface ListedMessage {
  readonly seq: string;
  readonly id: string;
  readonly type: string;
  readonly created: string;
  readonly example: boolean;
  readonly status: MessageStatus;
  readonly endpoints: number;
}

const messagesPerPage = 50;
/** How many messages are searched for one page. A rare status among millions is found in several steps. */
export const messagesSearchedMax = 50_000;

export interface MessagePage {
  readonly messages: readonly ListedMessage[];
  /** Whether there are more before the last of them, as far as was searched. */
  readonly more: boolean;
  /** The last message that was searched, if the search found less than a page and stopped before the end. */
  readonly searchedTo: { readonly seq: string; readonly created: string } | null;
}

/** The messages before `before` that match what the filter says about them, the newest first. */
const candidates = `select e.seq, e.id, e.type, e.example, e.created from sandbox.events e
  where e.organization_id = $1 and ($2::text is null or e.type = $2)
    and ($3::timestamp is null or e.created >= $3) and ($4::timestamp is null or e.created < $4)
    and ($5::bigint is null or e.seq < $5)
  order by e.seq desc limit ${messagesSearchedMax}`;

/** Reads messages before `before`, the newest first, with the status that most needs attention. */
export async function readMessages(
  pool: Pool,
  organizationId: string,
  filter: MessageFilter,
  before: string | null,
): Promise<MessagePage> {
  const { type, status, endpointId, from, until } = filter;
  const bounds = [organizationId, type, from, until, before];
  const { rows } = await pool.query<ListedMessage>({
    name: 'portal messages',
    text: `select e.seq::text as seq, e.id, e.type, e.example, s.status, s.endpoints,
        to_char(e.created, 'YYYY-MM-DD"T"HH24:MI:SS.US') as created
      from (${candidates}) e, lateral (
        select count(*)::integer as endpoints, case
          when bool_or(m.status = 'failed') then 'failed' when bool_or(m.status = 'retrying') then 'retrying'
          when bool_or(m.status = 'pending') then 'pending' when bool_or(m.status = 'delivered') then 'delivered'
          else 'missing' end as status
        from sandbox.message_standings m join sandbox.endpoints p on p.id = m.endpoint_id
        where m.event_seq = e.seq and (p.id = $7 or ($7::text is null and p.state <> 'removed'))) s
      where ($6::text is null or s.status = $6)
        and ($7::text is null or s.endpoints > 0 or (not e.example and exists (select from sandbox.endpoints q
          where q.id = $7 and (q.event_types = '{}' or e.type = any (q.event_types)))))
      order by e.seq desc limit ${messagesPerPage + 1}`,
    values: [...bounds, status, endpointId],
  });
  const messages = rows.slice(0, messagesPerPage);
  const more = rows.length > messagesPerPage;
  const narrowed = status !== null || endpointId !== null;
  return { messages, more, searchedTo: narrowed && !more ? await searchEnd(pool, bounds) : null };
}

/** Returns the last message that a search looked at, or null if the search reached the end. */
async function searchEnd(pool: Pool, bounds: readonly (string | null)[]): Promise<MessagePage['searchedTo']> {
  const { rows } = await pool.query<{ seq: string; created: string }>({
    name: 'portal search end',
    text: `select e.seq::text as seq, to_char(e.created, 'YYYY-MM-DD"T"HH24:MI:SS.US') as created
      from (${candidates}) e order by e.seq desc offset ${messagesSearchedMax - 1}`,
    values: [...bounds],
  });
  return rows[0] ?? null;
}
