-- Every change that was written before the returned time is visible to the caller's next statement:
-- the time is before the start of each transaction that may still commit a change. Sessions that
-- may not write are left out. If the caller may not see what another role does, the role's
-- transactions are expected to last at most five minutes. A second is subtracted, because a session
-- shows its transaction a moment after its start.
create or replace function metersync.changes_seen_until () returns timestamptz
language sql volatile as $$
  select greatest(
    clock_timestamp() - interval '5 minutes',
    least(clock_timestamp(), min(coalesce(a.xact_start, a.query_start, '-infinity')))
      - interval '1 second'
  )
  from pg_stat_activity a
  where a.datid = (select oid from pg_database where datname = current_database())
    and a.pid <> pg_backend_pid()
    and a.state is distinct from 'idle'
    and has_table_privilege(a.usesysid, 'metersync.company_changes'::regclass, 'insert')
$$;
comment on function metersync.changes_seen_until is
  'A time before which no change was written that is still invisible.';
