-- What a bill adds to sums before and after each moment that could change this. Such a moment is
-- the beginning of the bill's own next state, or of the next state of a document that takes its
-- place. Documents that never changed and name no other document are not read. Each step is used
-- once, so that a condition on the company reaches the tables. A bill that is new, or was read in
-- another version of the API, is not a correction.
create or replace view analytics.bill_corrections as
with ended as (
  select company_id, id, max(valid_to) as at
  from history.documents
  group by company_id, id
), states as (
  select
    id, company_id, site_id, raw, raw_updated, api_version, deleted_at, deleted_reason,
    revised_document_id,
    valid_from as began,
    valid_to as ended,
    ended_by_kind, ended_by
  from history.documents
  where valid_from < valid_to
  union all
  select
    d.id, d.company_id, d.site_id, d.raw, d.raw_updated, d.api_version, d.deleted_at,
    d.deleted_reason, d.revised_document_id, coalesce(ended.at, d.first_synced_at), 'infinity',
    null, null
  from utility.documents d
    left join ended on ended.id = d.id and ended.company_id = d.company_id
  where ended.at is not null
    or d.revised_document_id is not null
), moments as (
  select
    s.*, m.at, m.other_kind, m.other_by,
    case
      when s.revised_document_id is not null and s.deleted_at is null and s.raw is not null
        then analytics.superseded_by(s.id, m.at)
    end as superseded_by
  from states s
    cross join lateral (
      select s.began as at, null as other_kind, null as other_by
      union all
      select t.at, t.ended_by_kind, t.ended_by
      from analytics.superseding_times(s.id) as t
      -- A document that names no other document depends on no other document.
      where s.revised_document_id is not null
        and s.deleted_at is null
        and s.raw is not null
        and t.at > s.began
        and t.at < s.ended
    ) m
), judged as (
  select
    *,
    case
      when deleted_at is not null then 'deleted'
      when raw is null then 'not_read'
      when superseded_by is not null then 'superseded'
    end as not_counted
  from moments
), neighboured as (
  select
    *,
    count(raw) over (state rows between unbounded preceding and 1 preceding) = 0 as is_new,
    lag(raw) over state as old_raw,
    lag(deleted_at) over state as old_deleted_at,
    lag(revised_document_id) over state as old_link,
    lag(not_counted) over state as not_counted_before,
    case when at = began then lag(ended_by_kind) over state else other_kind end as changed_by_kind,
    case when at = began then lag(ended_by) over state else other_by end as changed_by,
    deleted_at is not distinct from lag(deleted_at) over state and api_version is distinct from lag(
      api_version
    ) over state and raw_updated is not distinct from lag(raw_updated) over state as
      is_read_otherwise
  from judged
  window state as (partition by company_id, id order by at)
), named as (
  select
    *,
    case
      when not_counted is not null then not_counted
      when not_counted_before is not null then 'restored'
      else 'corrected'
    end as change,
    not_counted is null as counts,
    not_counted_before is null as counted
  from neighboured
  where raw is not null
    and not is_new
    and not is_read_otherwise
    -- A bill that counts neither before nor after is in no sum.
    and case when not_counted is null then true else not_counted_before is null end
), changes as (
  select
    s.id as bill_id,
    s.company_id, s.site_id, n.account_number, n.provider, n.invoice_id,
    s.at as changed_at,
    s.changed_by_kind, s.changed_by,
    case
      when s.change = 'corrected' and d.fields = array['account_number'] then 'moved'
      else s.change
    end as change,
    d.fields, a.currency, a.cost_before, a.cost_after,
    coalesce(a.cost_after, 0) - coalesce(a.cost_before, 0) as cost_change,
    case
      when s.change = 'deleted' then 'deleted: ' || coalesce(s.deleted_reason, 'unknown')
      when s.change = 'superseded' then 'superseded by ' || s.superseded_by::text
      when s.change = 'restored' and s.not_counted_before = 'deleted' then 'deletion undone'
      when s.change = 'restored' and s.old_link is distinct from s.revised_document_id
        then 'link changed'
      when s.change = 'restored' then 'superseding bill gone'
    end as reason
  from named s
    cross join lateral analytics.read_bill(s.old_raw) as o
    cross join lateral analytics.read_bill(s.raw) as n
    cross join lateral (
      select coalesce(array_agg(c.field order by c.seq), '{}') as fields
      from analytics.bill_differences(s.old_raw, s.old_deleted_at, s.raw, s.deleted_at) as c
    ) d
    cross join lateral (
      select
        coalesce(o.current_charges, o.total_charges) as cost_before,
        coalesce(n.current_charges, n.total_charges) as cost_after,
        o.currency is not distinct from n.currency as in_one_currency
      offset 0
    ) c
    -- One row if it counts on only one side, or in one currency on both sides; otherwise one row
    -- for each currency.
    cross join lateral (
      select n.currency, c.cost_before, c.cost_after
      where s.counted
        and s.counts
        and c.in_one_currency
      union all
      select o.currency, c.cost_before, 0
      where s.counted
        and not (s.counts and c.in_one_currency)
      union all
      select n.currency, 0, c.cost_after
      where s.counts
        and not (s.counted and c.in_one_currency)
    ) a
  where s.counts <> s.counted
    or cardinality(d.fields) > 0
)
select h.*, c.name as company, s.name as site
from changes h
  left join utility.companies c on c.id = h.company_id
  left join utility.sites s on s.id = h.site_id
order by uuid_hash(bill_id);
comment on view analytics.bill_corrections is
  'One row for each correction, supersession, deletion or restoration of a bill and each currency. '
  'sum(cost_change) is exact.';
comment on column analytics.bill_corrections.change is
  'corrected, moved (only to another account), superseded, deleted, restored (it counts again) or '
  'not_read.';
comment on column analytics.bill_corrections.changed_at is 'When the warehouse got the change.';
comment on column analytics.bill_corrections.changed_by_kind is 'event or run.';
comment on column analytics.bill_corrections.fields is 'Fields of the bill that changed.';
comment on column analytics.bill_corrections.cost_before is
  'Its part of sums before; NULL without an amount.';
comment on column analytics.bill_corrections.cost_after is 'Its part of sums since.';
comment on column analytics.bill_corrections.cost_change is 'What sums changed by.';
comment on column analytics.bill_corrections.reason is
  'How it was deleted, superseded or restored.';
