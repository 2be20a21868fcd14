import { type SQL, sql } from 'drizzle-orm';
import type { Replay } from '../../contract/delivery.ts';
import { companyEventKinds, type DecodedEvent } from '../../contract/event.ts';
import type { FailureCode } from '../../contract/failures.ts';
import { array, columnNames, type RowOf, setToExcluded, unnested } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { hot } from '../connection/hot.ts';
import { events, journal } from '../schema/metersync.ts';
import { companies } from '../schema/utility.ts';

/**
 * An event to insert into the journal. `payload` is JSON text; `body` holds bytes that jsonb cannot
 * hold.
 */
export interface JournalEntry {
  readonly id: string;
  readonly receivedAt: string;
  readonly event: DecodedEvent;
  readonly payload: string | null;
  readonly body: Buffer | null;
  readonly error: string | null;
  readonly errorCode: FailureCode | null;
}

/** Which workflow records events, and which existing ones it records anew. */
export interface Recording {
  readonly workflow?: { readonly workflowId: string; readonly runId: string } | undefined;
  readonly replay?: Replay | undefined;
  /** Called with every payload that was read. */
  readonly onPayload?: ((type: string, payload: unknown) => void) | undefined;
}

/**
 * The outcomes that a delivery records anew. Without a replay: dead and missing events, since
 * sending one again asks for another attempt. A run never revives what it recorded: each try of its
 * activity would do all the work of dead events again.
 */
const revived: Readonly<Record<Replay | 'none', readonly string[]>> = {
  none: ['dead', 'missing'],
  unapplied: ['dead', 'missing', 'ignored', 'superseded', 'pending'],
  all: ['dead', 'missing', 'ignored', 'superseded', 'pending', 'applied'],
};

function arrivedAs(entry: JournalEntry): string {
  if (entry.error !== null) return 'dead';
  if (entry.event.kind === 'ignored') return 'ignored';
  return entry.event.deletes ? 'applied' : 'pending';
}

/** The columns of a new event, and below those that a repeated delivery overwrites. */
const inserted = [
  journal.id,
  journal.type,
  journal.kind,
  journal.recordId,
  journal.companyId,
  journal.occurredAt,
  journal.rangeStart,
  journal.rangeEnd,
  journal.intervalCount,
  journal.receivedAt,
  journal.payload,
  journal.body,
  journal.arrivedAs,
  journal.error,
  journal.errorCode,
  journal.workflowId,
  journal.workflowRunId,
];
const recordedAnew = inserted.filter(
  (column) => column !== journal.id && column !== journal.receivedAt,
);

/**
 * A bound of an event's range; null without a payload. Year 1 of another zone begins before year 1
 * in UTC, where ISO texts, with which ranges are read, have no year.
 */
const boundOf = (field: 'start' | 'end'): SQL => sql`case
          when kind = 'interval' and r is not null
          then greatest(metersync.read_time(r ->> ${field}::text), '0001-01-01T00:00:00Z')
        end`;

/**
 * Inserts events into the journal. Returns how each arrived that is new or recorded anew: the dead,
 * the missing and those that a replay names. This makes recording idempotent: any other event in
 * the journal has had, or will have, its effect.
 * Also writes `public_id`, which may be in events alone, to existing companies without one. The
 * API's record outranks it. No event makes the row of a company (see db/backfill/strangers.ts).
 * Events that take effect at once leave nothing to read. If their company does not exist they wait
 * all the same, until the service is asked about it.
 */
export async function insertJournal(
  tx: Executor,
  entries: readonly JournalEntry[],
  { workflow, replay }: Recording,
): Promise<Map<string, string>> {
  const again = array(revived[replay ?? 'none'], 'text');
  // An event that another group is recording now has no visible outcome: it is not revived.
  const isRevived = (id: SQL): SQL => sql`(
          select existing.outcome
          from ${events} existing
          where existing.id = ${id}
            and existing.workflow_run_id is distinct from ${workflow?.runId ?? ''}
        ) = any(${again})`;
  const incoming = unnested('t', entries, [
    ['id', 'text', (e) => e.id],
    ['type', 'text', (e) => e.event.type],
    ['kind', 'text', (e) => e.event.kind],
    ['record_id', 'text', (e) => e.event.recordId],
    ['company_id', 'uuid', (e) => e.event.companyId],
    ['occurred_at', 'text', (e) => e.event.occurredAt],
    ['received_at', 'timestamptz', (e) => e.receivedAt],
    ['payload', 'text', (e) => e.payload],
    ['body', 'text', (e) => e.body?.toString('base64') ?? null],
    ['arrived_as', 'text', arrivedAs],
    ['error', 'text', (e) => e.error],
    ['error_code', 'text', (e) => e.errorCode],
  ]);
  const result = await hot(tx, 'insertJournal').execute<
    RowOf<typeof journal.id | typeof journal.arrivedAs>
  >(sql`
    with fresh as (
      insert into ${journal} as e (${columnNames(inserted)})
      select
        id,
        type,
        kind,
        record_id,
        company_id,
        metersync.read_time(occurred_at),
        ${boundOf('start')},
        ${boundOf('end')},
        case
          when kind = 'interval' and r ->> 'intervalCount' ~ '^[0-9]{1,18}$'
          then (r ->> 'intervalCount')::bigint
        end,
        received_at,
        r,
        decode(body, 'base64'),
        case
          when arrived_as = 'applied' and not exists (
            select from ${companies} existing
            where existing.id = t.company_id
            offset 0
          )
          then 'pending'
          else arrived_as
        end,
        error,
        error_code,
        ${workflow?.workflowId ?? null}::text,
        ${workflow?.runId ?? null}::text
      from ${incoming}
        cross join lateral (select t.payload::jsonb as r offset 0) parsed
      -- Existing events are skipped before the conflict, which would lock them.
      where not exists (
          select from ${journal} existing
          where existing.id = t.id
        )
        or ${isRevived(sql`t.id`)}
      order by id
      on conflict (id) do update set
        ${setToExcluded(recordedAnew)},
        recorded_at = clock_timestamp(),
        payload_dropped_at = null
      where ${isRevived(sql`e.id`)}
        -- Another delivery may have revived it since this statement began.
        and e.recorded_at = (
          select existing.recorded_at
          from ${journal} existing
          where existing.id = e.id
        )
      returning id, kind, arrived_as, company_id, occurred_at, payload
    ), named as materialized (
      select distinct on (company_id)
        company_id as id,
        payload #>> '{company,publicId}' as public_id
      from fresh
      where kind = any(${array(companyEventKinds, 'text')})
        and payload #>> '{company,publicId}' is not null
      order by company_id, occurred_at desc nulls last, payload -> 'company'
    ), filled as (
      update ${companies} c set
        public_id = (select n.public_id from named n where n.id = c.id)
      where c.id = any(array(select id from named order by id))
        and c.public_id is null
    )
    select id, arrived_as
    from fresh`);
  return new Map(result.rows.map((row) => [row.id, row.arrived_as]));
}
