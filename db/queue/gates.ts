import { eq, type SQL, type SQLWrapper, sql } from 'drizzle-orm';
import type { SingleEndpoint } from '../../contract/endpoints.ts';
import type { FailureCode, WaitingReason } from '../../contract/failures.ts';
import { recordPolicy } from '../../contract/retry-policy.ts';
import { array } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { tableOf } from '../resources.ts';
import { gates, journal } from '../schema/metersync.ts';
import { deletes } from '../schema/reads.ts';
import { usageData } from '../schema/utility.ts';
import { backOff } from './queue.ts';

/** The scope of the gate for all requests. The gate of an owner has the queue of the owner as its scope. */
export const serviceScope = 'service';

/** The scope of the gate of an endpoint that answers 404 for records that the service has. */
export const endpointScope = (endpoint: SingleEndpoint): string => `endpoint/${endpoint}`;

/** The endpoints with a closed gate, as an array. */
export const closedEndpoints: SQL = sql`array(
        select substr(scope, length('endpoint/') + 1) from ${gates} where scope like 'endpoint/%'
      )`;

/** Whether a gate is not that of an owner, so that it needs a probe of its own. */
export const isShared: SQL = sql`(scope = 'service' or scope like 'endpoint/%')`;

/** Whether the gate for all requests is closed. */
export const isServiceClosed: SQL = sql`exists (select from ${gates} where scope = 'service')`;

/** Whether the gate of a queue is open. */
export const isOpen = (queue: SQLWrapper): SQL =>
  sql`not exists (select from ${gates} where scope = ${queue} offset 0)`;

/** The wait for the next probe after so many failed attempts. An outage is probed more often than a refusal. */
const untilProbe = (attempts: SQL, code: SQL): SQL => sql`least(
          ${backOff(attempts, recordPolicy.parkedSeconds)},
          case
            when ${code} = 'SERVICE_OUTAGE'
            then make_interval(secs => ${recordPolicy.outageProbedSeconds}::float8)
          end
        )`;

/** Closes a gate. If it is closed already, requests that fail before the next probe count as one attempt. */
export async function closeGate(db: Executor, scope: string, reason: WaitingReason): Promise<void> {
  const { code, message } = reason;
  await db.execute(sql`
    insert into ${gates} as gate (scope, code, message, attempts, next_probe_at)
    values (
      ${scope}, ${code}, ${message}, 1, clock_timestamp() + ${untilProbe(sql`0`, sql`${code}`)}
    )
    on conflict (scope) do update set
      code = excluded.code,
      message = excluded.message,
      since = case when gate.code = excluded.code then gate.since else excluded.since end,
      attempts = gate.attempts + (gate.next_probe_at <= clock_timestamp())::int,
      next_probe_at = case
        when gate.next_probe_at > clock_timestamp() then gate.next_probe_at
        else clock_timestamp() + ${untilProbe(sql`gate.attempts`, sql`excluded.code`)}
      end`);
}

/** Returns why the gate for all requests is closed; undefined if it is open. */
export async function whyServiceClosed(db: Executor): Promise<WaitingReason | undefined> {
  const [closed] = await db
    .select({ code: gates.code, message: gates.message })
    .from(gates)
    .where(eq(gates.scope, serviceScope));
  return closed && { ...closed, code: closed.code as FailureCode };
}

/** Returns which of these scopes have a closed gate, and whether the gate for all requests is closed. */
export async function closedAmong(db: Executor, scopes: readonly string[]): Promise<Set<string>> {
  const closed = await db
    .select({ scope: gates.scope })
    .from(gates)
    .where(sql`${gates.scope} = any(${array([serviceScope, ...scopes], 'text')})`);
  return new Set(closed.map(({ scope }) => scope));
}

/**
 * Claims the next probe of a closed gate, if it is time for one. Returns the number of attempts so far, which
 * includes this probe; undefined if it is not time, another process probes, or the gate is open.
 */
export async function claimProbe(db: Executor, scope: string): Promise<number | undefined> {
  const { rows } = await db.execute<{ attempts: number }>(sql`
    update ${gates} gate set
      attempts = gate.attempts + 1,
      next_probe_at = clock_timestamp() + ${untilProbe(sql`gate.attempts`, sql`gate.code`)}
    where scope = ${scope}
      and next_probe_at <= clock_timestamp()
    returning attempts`);
  return rows[0]?.attempts;
}

/** Failures that usually end for all owners at once. 404 is not among them: it often concerns one record. */
const endTogether: readonly FailureCode[] = ['SERVICE_ACCESS_DENIED', 'SERVICE_REQUEST_REFUSED'];

/**
 * Opens a gate, because a request of its scope succeeded; returns whether it was closed. Other gates are
 * probed at once if they are closed for a failure that usually ends for all owners at once.
 */
export async function openGate(db: Executor, scope: string): Promise<boolean> {
  const { rows } = await db.execute<{ opened: boolean }>(sql`
    with opened as (
      delete from ${gates}
      where scope = ${scope}
      returning code
    ), probed as (
      update ${gates} set
        next_probe_at = clock_timestamp()
      where scope <> ${scope}
        and code in (select code from opened where code = any(${array(endTogether, 'text')}))
        and next_probe_at > clock_timestamp()
    )
    select exists (select from opened) as opened`);
  return rows[0]?.opened === true;
}

/** Opens all gates that are closed for one of these failures; returns the number of events behind them. */
export async function openGates(db: Executor, codes: readonly FailureCode[]): Promise<number> {
  const { rows } = await db.execute<{ events: number }>(sql`
    with opened as (
      delete from ${gates}
      where code = any(${array(codes, 'text')})
      returning scope
    )
    select count(*)::int as events
    from ${journal}
    where queue = any(array(select scope from opened))`);
  return rows[0]?.events ?? 0;
}

/**
 * Returns some records of an endpoint that the service showed when they were read last, or documents with usage.
 * Records whose deletion is held back are left out.
 */
export async function recordsToProbe(
  db: Executor,
  endpoint: SingleEndpoint,
  count: number,
): Promise<string[]> {
  const resource = endpoint === 'connection' ? 'connections' : 'documents';
  // The fence has Postgres look the usage up for each document: few documents have none.
  const hasUsage = sql`exists (
          select from ${usageData} u
          where u.document_id = r.id and u.deleted_at is null
          offset 0
        )`;
  const { rows } = await db.execute<{ id: string }>(sql`
    select id
    from ${tableOf(resource)} r
    where raw is not null
      and deleted_at is null
      and not exists (
        select from ${deletes} d
        where d.resource = ${resource}
          and d.record_id = r.id::text
          and d.state = 'quarantined'
      )
      and ${endpoint === 'documentUsage' ? hasUsage : sql`true`}
    order by id
    limit ${count}`);
  return rows.map(({ id }) => id);
}
