-- The journal, with the payload of each event and the reason for which it waits.
create or replace view metersync.events as
select
  e.id, e.type, e.kind, e.record_id, e.company_id, e.occurred_at, e.range_start, e.range_end,
  e.received_at, e.recorded_at, p.payload, p.body, e.outcome,
  case
    when e.outcome in ('applied', 'superseded') then coalesce(e.settled_at, e.recorded_at)
  end as applied_at,
  coalesce(
    g.message, e.error,
    case
      when e.outcome <> 'ignored' then null
      when e.type = 'metersync.probe' then 'metersync doctor sent it, to see whether events arrive'
      else 'metersync does not use events of this type'
    end
  ) as error,
  coalesce(g.code, e.error_code) as error_code,
  e.attempts,
  case
    when g.scope is not null then greatest(e.due_at, g.next_probe_at)
    when e.outcome = 'pending' and e.attempts > 0 then e.due_at
  end as next_attempt_at,
  e.interval_count, e.intervals_found, e.workflow_id, e.workflow_run_id, e.payload_dropped_at,
  e.settled_at
from metersync.journal e
  left join metersync.event_payloads p on p.id = e.id
  left join metersync.gates g on g.scope = e.queue;
comment on view metersync.events is 'The journal: each verified event once, with its outcome.';
comment on column metersync.events.payload is
  'The payload. It has U+FFFD for each NUL and half of a surrogate pair, which Postgres cannot '
  'hold, and is NULL if it cannot be read; body then has its bytes.';
comment on column metersync.events.body is
  'The exact bytes of a payload that jsonb cannot hold as it was sent.';
comment on column metersync.events.outcome is
  'pending: its record waits to be read again; applied; superseded: a newer state was already '
  'known; ignored: unknown type; dead: it cannot be applied, see error; missing: the service '
  'never showed the state that it named.';
comment on column metersync.events.applied_at is 'When its effect was in the warehouse.';
comment on column metersync.events.error is
  'Why it is dead, missing or ignored, or why it still waits.';
comment on column metersync.events.attempts is
  'Unsuccessful attempts to read its record, for the reason in error_code.';
comment on column metersync.events.next_attempt_at is 'Not read again before this time.';
select metersync.copy_comments('metersync.journal', 'metersync.events');
