create or replace view analytics.bill_corrections as
with
  final as (
    select *
    from analytics.bill_changes
    where change not in ('new', 'read_otherwise')
  )
select * from final;

comment on view analytics.bill_corrections is
  'One row for each bill and correction, two where its currency changed (one a currency): what '
  'was corrected in place, superseded, deleted or restored after it was first read, with what it '
  'did to cost. sum(cost_change) by currency is true.';
comment on column analytics.bill_corrections.change is
  'corrected: in place; superseded: another bill took its place; deleted; restored: it counts '
  'again, or for the first time; not_read.';

select metersync.copy_comments('analytics.bill_changes', 'analytics.bill_corrections');
