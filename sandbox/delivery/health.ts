import type { ClientBase } from 'pg';
import type { Outcome } from './outcome.ts';
import { failingSecondsMax } from './schedule.ts';

/** What a batch of outcomes says of an endpoint: whether it works, and since when it has failed. */
export interface Health {
  readonly endpointId: string;
  readonly succeeded: boolean;
  /** The first failure after the last success of the batch. */
  readonly failingSince: string | null;
  readonly lastFailure: string | null;
}

export function healthOf(outcomes: readonly Outcome[]): Health[] {
  const health = new Map<string, Health>();
  for (const { endpointId, state, at, duplicate, answer } of outcomes) {
    if (duplicate || answer === undefined) continue;
    const before = health.get(endpointId);
    const succeeded = state === 'delivered';
    health.set(endpointId, {
      endpointId,
      succeeded: succeeded || (before?.succeeded ?? false),
      failingSince: succeeded ? null : (before?.failingSince ?? at),
      lastFailure: succeeded ? null : at,
    });
  }
  return [...health.values()];
}

/** Keeps since when each endpoint fails: a success clears it. Returns those that have failed for five days. */
export async function updateHealth(client: ClientBase, health: readonly Health[]): Promise<string[]> {
  if (health.length === 0) return [];
  const { rows } = await client.query<{ id: string }>({
    name: 'update health',
    text: `with said as (select * from unnest($1::text[], $2::boolean[], $3::timestamp[], $4::timestamp[])
          v (id, succeeded, failing_since, last_failure)),
      now_failing as (
        select s.id, s.last_failure, e.failing_since as before,
          case when s.succeeded then s.failing_since else coalesce(e.failing_since, s.failing_since) end as since
        from said s join sandbox.endpoints e on e.id = s.id and e.state = 'active'),
      kept as (update sandbox.endpoints e set failing_since = n.since from now_failing n
        where e.id = n.id and n.since is distinct from n.before)
      select id from now_failing where last_failure - since >= $5::float8 * interval '1 second'`,
    values: [
      health.map((one) => one.endpointId),
      health.map((one) => one.succeeded),
      health.map((one) => one.failingSince),
      health.map((one) => one.lastFailure),
      failingSecondsMax,
    ],
  });
  return rows.map((row) => row.id);
}
