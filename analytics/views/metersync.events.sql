-- The journal, with the outcome of each event.
-- An event that had to wait takes the first settlement of its record that covers it.
-- Where there is none yet, it takes the error of the stale record.
-- A deletion that waited is applied once the record is gone.
-- One that was given up is settled by any later read that returns its record.
create or replace view metersync.events as
select
  e.id,
  e.type,
  e.kind,
  e.record_id,
  e.company_id,
  e.occurred_at,
  e.range_start,
  e.range_end,
  e.received_at,
  e.recorded_at,
  e.payload,
  e.body,
  case
    when e.arrived_as <> 'pending' then e.arrived_as
    when done.outcome = 'superseded'
    and e.type = 'document.deleted.v2' then 'applied'
    else coalesce(done.outcome, 'pending')
  end as outcome,
  case
    when e.arrived_as = 'applied' then e.recorded_at
    when done.outcome in ('applied', 'superseded') then done.settled_at
  end as applied_at,
  coalesce(e.error, done.error, waits.error) as error,
  coalesce(e.error_code, done.error_code, waits.error_code) as error_code,
  coalesce(done.attempts, waits.attempts, 0) as attempts,
  case
    when waits.attempts > 0 then waits.due_at
  end as next_attempt_at,
  e.interval_count,
  done.intervals_found,
  e.workflow_id,
  e.workflow_run_id,
  e.payload_dropped_at,
  done.settled_at
from
  metersync.journal e
  left join lateral (
    select
      s.outcome,
      s.settled_at,
      s.error,
      s.error_code,
      s.attempts,
      s.intervals_found
    from
      metersync.settlements s
    where
      e.arrived_as = 'pending'
      and s.kind = e.kind
      and s.record_id = case e.kind
        when 'interval' then e.id
        else e.record_id
      end
      and e.recorded_at between s.since and s.read_at
      and s.shown >= coalesce(e.occurred_at, '-infinity')
      and not (
        s.updates_only
        and e.type = 'document.deleted.v2'
      )
    order by
      s.outcome in ('missing', 'dead'),
      s.settled_at,
      s.shown
    limit
      1
  ) done on true
  left join lateral (
    select
      r.attempts,
      r.due_at,
      r.error,
      r.error_code
    from
      metersync.stale_records r
    where
      e.arrived_as = 'pending'
      and done.outcome is null
      and r.key = e.kind || '/' || case e.kind
        when 'interval' then e.id
        else e.record_id
      end
    offset
      0
  ) waits on true;
comment on view metersync.events is 'The journal, with what became of each event.';
comment on column metersync.events.id is 'Message id of the delivery: the same on every attempt.';
comment on column metersync.events.type is 'Type of the event; derived from its shape where the payload names none; else unknown.';
comment on column metersync.events.kind is 'connection, document, interval or ignored.';
comment on column metersync.events.record_id is 'Connection, document or meter that the event is about.';
comment on column metersync.events.company_id is 'Company that the payload names.';
comment on column metersync.events.occurred_at is 'updated of the record in the payload.';
comment on column metersync.events.range_start is 'Start of a synced interval range.';
comment on column metersync.events.range_end is 'End of a synced interval range.';
comment on column metersync.events.received_at is 'When the receiver had the request (its clock).';
comment on column metersync.events.recorded_at is 'When the event entered the journal (the clock of the warehouse).';
comment on column metersync.events.payload is 'The payload; NULL where Postgres cannot hold it: then body has its bytes.';
comment on column metersync.events.body is 'The exact bytes of a payload that jsonb cannot hold.';
comment on column metersync.events.outcome is 'pending: its record waits to be read again; applied; superseded: a newer state was already known; ignored: unknown type; dead: it cannot be applied, see error; missing: the service never showed the state that it named.';
comment on column metersync.events.applied_at is 'When its effect was in the warehouse.';
comment on column metersync.events.error is 'Why it is dead or missing, or why it still waits.';
comment on column metersync.events.error_code is 'Code of the failure in error, as docs/reference/failures.md lists them.';
comment on column metersync.events.attempts is 'Unsuccessful attempts to read its record, for the reason in error_code.';
comment on column metersync.events.next_attempt_at is 'Not read again before this time.';
comment on column metersync.events.interval_count is 'Readings that the event said its range has.';
comment on column metersync.events.intervals_found is 'Readings that the warehouse had in the range when it was fetched.';
comment on column metersync.events.workflow_id is 'Temporal workflow that recorded the event.';
comment on column metersync.events.workflow_run_id is 'Its run.';
comment on column metersync.events.payload_dropped_at is 'When payload or body was dropped for its age: the id stays.';
comment on column metersync.events.settled_at is 'When a read of its record settled it, or it was given up; NULL while it waits, and where it never had to.';
