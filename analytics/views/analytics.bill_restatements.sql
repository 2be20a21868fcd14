-- Each state of a document beside the one before: what was changed in place, superseded, deleted or
-- restored. What differs only because another version of the API was read was not corrected.
create or replace view analytics.bill_restatements as
with
  ended as (
    select
      company_id,
      id,
      max(valid_to) as at
    from
      history.documents
    group by
      company_id,
      id
  ),
  states as (
    select
      id,
      company_id,
      raw,
      raw_updated,
      api_version,
      deleted_at,
      valid_from as began,
      ended_by_kind,
      ended_by
    from
      history.documents
    union all
    select
      d.id,
      d.company_id,
      d.raw,
      d.raw_updated,
      d.api_version,
      d.deleted_at,
      ended.at,
      null,
      null
    from
      utility.documents d
      join ended on ended.id = d.id
      and ended.company_id = d.company_id
  ),
  neighboured as (
    select
      id as bill_id,
      company_id,
      began as changed_at,
      lag(ended_by_kind) over state as changed_by_kind,
      lag(ended_by) over state as changed_by,
      raw,
      deleted_at,
      lag(raw) over state as old_raw,
      lag(deleted_at) over state as old_deleted_at,
      api_version is distinct from lag(api_version) over state
      and raw_updated is not distinct from lag(raw_updated) over state as is_read_otherwise
    from
      states
    window
      state as (
        partition by
          company_id,
          id
        order by
          began
      )
  ),
  changes as (
    select
      s.bill_id,
      s.company_id,
      s.changed_at,
      s.changed_by_kind,
      s.changed_by,
      d.field,
      d.old_value,
      d.new_value,
      n.currency,
      nu.usage_units,
      -- In one row of a change alone, so that sums are right.
      d.field = 'cost'
      and o.currency is not distinct from n.currency as is_cost,
      d.field = 'usage'
      and ou.usage_units is not distinct from nu.usage_units as is_usage
    from
      neighboured s
      cross join analytics.bill_differences (s.old_raw, s.old_deleted_at, s.raw, s.deleted_at) as d
      cross join analytics.read_bill (s.old_raw) as o
      cross join analytics.read_bill (s.raw) as n
      cross join analytics.read_bill_usage (s.old_raw) as ou
      cross join analytics.read_bill_usage (s.raw) as nu
    where
      s.old_raw is not null
      and (
        not s.is_read_otherwise
        or d.field = 'deleted_at'
      )
  ),
  final as (
    select
      bill_id,
      company_id,
      changed_at,
      changed_by_kind,
      changed_by,
      field,
      old_value,
      new_value,
      currency,
      case
        when is_cost then coalesce(new_value::numeric, 0) - coalesce(old_value::numeric, 0)
      end as cost_change,
      case
        when is_usage then coalesce(new_value::numeric, 0) - coalesce(old_value::numeric, 0)
      end as usage_change,
      usage_units
    from
      changes
  )
select
  *
from
  final;
comment on view analytics.bill_restatements is 'One row for each field of a bill that changed after its first read.';
comment on column analytics.bill_restatements.changed_at is 'When the warehouse got the change.';
comment on column analytics.bill_restatements.changed_by_kind is 'event or run; NULL where neither is known.';
comment on column analytics.bill_restatements.changed_by is 'Id of the event or run.';
comment on column analytics.bill_restatements.field is 'Field.';
comment on column analytics.bill_restatements.old_value is 'Old value.';
comment on column analytics.bill_restatements.new_value is 'New value.';
comment on column analytics.bill_restatements.currency is 'Currency of the amounts: never add those of several.';
comment on column analytics.bill_restatements.cost_change is 'In the row of cost: its change. For sums see bill_corrections.';
comment on column analytics.bill_restatements.usage_change is 'In the row of usage: its change.';
comment on column analytics.bill_restatements.usage_units is 'Unit of usage_change.';
