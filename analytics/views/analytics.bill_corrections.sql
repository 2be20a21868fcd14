create or replace view analytics.bill_corrections as
with
  final as (
    select
      *
    from
      analytics.bill_changes
    where
      change not in ('new', 'read_otherwise')
  )
select
  *
from
  final;
comment on view analytics.bill_corrections is 'One row for each correction, supersession, deletion or restoration of a bill. sum(cost_change) by currency is exact.';
comment on column analytics.bill_corrections.change is 'corrected (in place), superseded, deleted, restored (it counts again, or first), not_read.';
select
  metersync.copy_comments ('analytics.bill_changes', 'analytics.bill_corrections');
