-- The journal, with what became of each event: of one that had to wait, the first settlement of its record that covers it, or
-- the record that is still stale. A deletion that waited is applied where the record is gone. One that was given up counts as
-- settled by whatever shows its record later.
create or replace view metersync.events as
select
  e.id, e.type, e.kind, e.record_id, e.company_id, e.occurred_at, e.range_start, e.range_end,
  e.received_at, e.recorded_at, e.payload, e.body,
  case
    when e.arrived_as <> 'pending' then e.arrived_as
    when done.outcome = 'superseded' and e.type = 'document.deleted.v2' then 'applied'
    else coalesce(done.outcome, 'pending')
  end as outcome,
  case
    when e.arrived_as in ('applied', 'superseded') then e.recorded_at
    when done.outcome in ('applied', 'superseded') then done.settled_at
  end as applied_at,
  coalesce(e.error, done.error, waits.error) as error,
  coalesce(e.error_code, done.error_code, waits.error_code) as error_code,
  coalesce(done.attempts, waits.attempts, 0) as attempts,
  case when waits.attempts > 0 then waits.due_at end as next_attempt_at,
  e.interval_count, done.intervals_found, e.workflow_id, e.workflow_run_id, e.payload_dropped_at
from metersync.journal e
  left join lateral (
    select s.outcome, s.settled_at, s.error, s.error_code, s.attempts, s.intervals_found
    from metersync.settlements s
    where e.arrived_as = 'pending'
      and s.kind = e.kind
      and s.record_id = case e.kind when 'interval' then e.id else e.record_id end
      and e.recorded_at between s.since and s.read_at
      and s.shown >= coalesce(e.occurred_at, '-infinity')
      and not (s.updates_only and e.type = 'document.deleted.v2')
    order by s.outcome in ('missing', 'dead'), s.settled_at, s.shown
    limit 1
  ) done on true
  left join lateral (
    select r.attempts, r.due_at, r.error, r.error_code
    from metersync.stale_records r
    where e.arrived_as = 'pending' and done.outcome is null
      and r.key = e.kind || '/' || case e.kind when 'interval' then e.id else e.record_id end
    offset 0
  ) waits on true;
comment on view metersync.events is 'The journal: every verified event once, by its id, with what became of it.';
select metersync.comment_columns('metersync.events', '{
  "id": "Message id of the delivery: the same on every attempt.",
  "type": "Type of the event; told by its shape where the payload names none; unknown where neither tells.",
  "kind": "connection, document, interval or ignored.",
  "record_id": "Connection, document or meter that the event is about.",
  "company_id": "Company that the payload names.",
  "occurred_at": "updated of the record in the payload.",
  "range_start": "Start of a synced interval range.",
  "range_end": "End of a synced interval range.",
  "received_at": "When the receiver had the request (its clock).",
  "recorded_at": "When the event entered the journal (the clock of the warehouse).",
  "payload": "The payload; NULL where Postgres cannot hold it: then body has its bytes.",
  "body": "The exact bytes of a payload that jsonb cannot hold.",
  "outcome": "pending: its record waits to be read again; applied; superseded: a newer state was already known; ignored: unknown type; dead: it cannot be applied, see error; missing: the service never showed what it told of.",
  "applied_at": "When its effect was in the warehouse.",
  "error": "Why it is dead or missing, or why it still waits.",
  "error_code": "Code of the failure in error, as docs/failures.md lists them.",
  "attempts": "How often its record was looked at in vain for the reason in error_code.",
  "next_attempt_at": "Not read again before this time.",
  "interval_count": "Readings that the event said its range has.",
  "intervals_found": "Readings that the warehouse had in the range when it was fetched.",
  "workflow_id": "Temporal workflow that recorded the event.",
  "workflow_run_id": "Its run.",
  "payload_dropped_at": "When payload or body was dropped for its age: the id stays."
}');

-- What was announced again after it was fetched is missing again until it was fetched again.
create or replace view metersync.interval_ledger as
with told as (
  select record_id as meter_id, range_agg(span) as announced,
    range_agg(span) filter (where outcome = 'pending') as waiting,
    sum(interval_count)::bigint as readings_told, sum(intervals_found)::bigint as readings_found,
    sum(greatest(interval_count - intervals_found, 0))::bigint as shortfall
  from (
    select *, tstzrange(range_start, range_end, '[]') as span
    from metersync.events
    where kind = 'interval' and outcome in ('pending', 'applied')
  ) announcement
  group by record_id
), ledger as (
  select meter_id, coalesce(announced, '{}') as announced,
    coalesce(fetched, '{}') - coalesce(waiting, '{}') as fetched,
    coalesce(readings_told, 0) as readings_told, coalesce(readings_found, 0) as readings_found,
    coalesce(shortfall, 0) as shortfall
  from told full join metersync.interval_fetches using (meter_id)
)
select meter_id, announced, fetched, announced - fetched as missing, readings_told, readings_found, shortfall
from ledger;

comment on view metersync.interval_ledger is
  'What of each meter''s readings events announced, what was fetched since, and what is missing.';
select metersync.comment_columns('metersync.interval_ledger', '{
  "meter_id": "The meter.",
  "announced": "All ranges that events announced, merged.",
  "fetched": "Ranges that were fetched, less those that were announced again since.",
  "missing": "announced less fetched.",
  "readings_told": "Readings that the events told of; those in several ranges count each time.",
  "readings_found": "Readings that the warehouse has in the ranges of the events, counted when each was fetched.",
  "shortfall": "Readings that events told of and their ranges did not show."
}');
