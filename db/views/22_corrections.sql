-- The usage that a document tells of, where it is all in one unit.
create or replace function analytics.read_bill_usage(raw jsonb) returns table (
  usage numeric,
  usage_units text
)
language sql stable parallel safe begin atomic
  select
    case
      when min(u ->> 'usageUnits') is not distinct from max(u ->> 'usageUnits')
        then sum(metersync.number_of(u ->> 'usage'))
    end,
    case
      when min(u ->> 'usageUnits') is not distinct from max(u ->> 'usageUnits')
        then min(u ->> 'usageUnits')
    end
  from jsonb_array_elements(metersync.elements(raw -> 'usageData')) as u;
end;
comment on function analytics.read_bill_usage is 'The usage that a document tells of, where it is all in one unit.';

-- Field by field what two states of a document tell otherwise.
create or replace function analytics.bill_differences(
  old_raw jsonb,
  old_deleted_at timestamptz,
  raw jsonb,
  deleted_at timestamptz
) returns table (
  seq integer,
  field text,
  old_value text,
  new_value text
)
language sql stable parallel safe begin atomic
  select told.seq, told.field, told.old_value, told.new_value
  from analytics.read_bill(old_raw) as o
    cross join analytics.read_bill(raw) as n
    cross join analytics.read_bill_usage(old_raw) as ou
    cross join analytics.read_bill_usage(raw) as nu
    cross join lateral (values
      (1, 'cost', coalesce(o.current_charges, o.total_charges)::text,
        coalesce(n.current_charges, n.total_charges)::text),
      (2, 'total_charges', o.total_charges::text, n.total_charges::text),
      (3, 'currency', o.currency, n.currency),
      (4, 'usage', ou.usage::text, nu.usage::text),
      (5, 'usage_units', ou.usage_units, nu.usage_units),
      (6, 'period_start', o.start_date::text, n.start_date::text),
      (7, 'period_end', o.end_date::text, n.end_date::text),
      (8, 'bill_date', o.bill_date::text, n.bill_date::text),
      (9, 'due_date', o.due_date::text, n.due_date::text),
      (10, 'account_number', o.account_number, n.account_number),
      (11, 'invoice_id', o.invoice_id, n.invoice_id),
      (12, 'is_estimated', o.is_estimated::text, n.is_estimated::text),
      (13, 'is_flagged', o.is_flagged::text, n.is_flagged::text),
      (14, 'revised_document_id', old_raw ->> 'revisedDocumentId', raw ->> 'revisedDocumentId'),
      (15, 'deleted_at', old_deleted_at::text, deleted_at::text)
    ) as told (seq, field, old_value, new_value)
  where told.old_value is distinct from told.new_value;
end;
comment on function analytics.bill_differences is 'Field by field what two states of a document tell otherwise.';

-- Each state of a document beside the one before: what changed in place, what was superseded,
-- deleted or came back. What reads otherwise because it was read in another version of the API,
-- unchanged at the service, was not corrected.
create or replace view analytics.bill_restatements as
with ended as (
  select company_id, id, max(valid_to) as at
  from history.documents
  group by company_id, id
), states as (
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
  from history.documents
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
  from utility.documents d
    join ended on ended.id = d.id and ended.company_id = d.company_id
), neighboured as (
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
  from states
  window state as (partition by company_id, id order by began)
), final as (
  select
    s.bill_id,
    s.company_id,
    s.changed_at,
    s.changed_by_kind,
    s.changed_by,
    changed.field,
    changed.old_value,
    changed.new_value,
    n.currency,
    -- In one row of a change alone, so that sums are right.
    case
      when changed.field = 'cost' and o.currency is not distinct from n.currency
        then coalesce(changed.new_value::numeric, 0) - coalesce(changed.old_value::numeric, 0)
    end as cost_change,
    case
      when changed.field = 'usage' and ou.usage_units is not distinct from nu.usage_units
        then coalesce(changed.new_value::numeric, 0) - coalesce(changed.old_value::numeric, 0)
    end as usage_change,
    nu.usage_units
  from neighboured s
    cross join lateral analytics.bill_differences(
      s.old_raw, s.old_deleted_at, s.raw, s.deleted_at) as changed
    cross join lateral analytics.read_bill(s.old_raw) as o
    cross join lateral analytics.read_bill(s.raw) as n
    cross join lateral analytics.read_bill_usage(s.old_raw) as ou
    cross join lateral analytics.read_bill_usage(s.raw) as nu
  where s.old_raw is not null
    and (not s.is_read_otherwise or changed.field = 'deleted_at')
)
select *
from final;
comment on view analytics.bill_restatements is 'One row for each field of a bill that changed after it was first read: by a correction in place, a link to another bill, a deletion or its undoing; not by being read in another version of the API. What it did to cost: see bill_corrections.';
select metersync.comment_columns('analytics.bill_restatements', '{
  "changed_at": "When the warehouse learnt of it.",
  "changed_by_kind": "event or run; NULL where neither is known.",
  "changed_by": "Id of the event or the run.",
  "field": "What changed.",
  "old_value": "What it was.",
  "new_value": "What it is since.",
  "currency": "Currency of the cost, since.",
  "cost_change": "In the row of the field cost: how much it changed, whether the bill counts or not; NULL in all other rows and where the currency changed. What a correction, a deletion or another bill in its place did to sums: bill_corrections.",
  "usage_change": "In the row of the field usage: how much it changed; NULL in all other rows and where the unit changed.",
  "usage_units": "Unit of usage_change."
}');

-- When any of the documents that lead on from this one, by the links of now or of any earlier time,
-- became what it was next: only then can another document change whether this one counts.
create or replace function analytics.superseding_times(document_id uuid) returns table (
  at timestamptz,
  ended_by_kind text,
  ended_by text
)
language sql stable parallel safe rows 4
security definer set search_path = pg_catalog, pg_temp
as $$
  with recursive reached (id) as (
    select document_id
    union
    select link.next
    from reached r
      cross join lateral (
        select d.revised_document_id
        from utility.documents d
        where d.id = r.id
        union all
        select h.revised_document_id
        from history.documents h
        where h.id = r.id
      ) link (next)
    where link.next is not null
  ), times as (
    select d.first_synced_at as at, null as ended_by_kind, null as ended_by
    from reached r
      join utility.documents d on d.id = r.id
    where r.id <> document_id
    union all
    select h.valid_to, h.ended_by_kind, h.ended_by
    from reached r
      join history.documents h on h.id = r.id
    where r.id <> document_id
  ), final as (
    select at, min(ended_by_kind) as ended_by_kind, min(ended_by) as ended_by
    from times
    group by at
  )
  select at, ended_by_kind, ended_by
  from final
$$;
comment on function analytics.superseding_times is 'When the documents changed that take, or took, this one''s place.';

-- What a bill came to in all sums, before and after each moment at which that could change: its own
-- next state, or one of a document that takes its place. Documents that were always the same and
-- name no other are read for new bills alone: to ask for corrections costs nothing for them.
-- Each step is used once: so a condition on the company reaches the tables.
create or replace view analytics.bill_changes as
with ended as (
  select company_id, id, max(valid_to) as at
  from history.documents
  group by company_id, id
), states as (
  select
    id,
    company_id,
    site_id,
    raw,
    raw_updated,
    api_version,
    deleted_at,
    deleted_reason,
    revised_document_id,
    valid_from as began,
    valid_to as ended,
    ended_by_kind,
    ended_by
  from history.documents
  where valid_from < valid_to
  union all
  select
    d.id,
    d.company_id,
    d.site_id,
    d.raw,
    d.raw_updated,
    d.api_version,
    d.deleted_at,
    d.deleted_reason,
    d.revised_document_id,
    coalesce(ended.at, d.first_synced_at),
    'infinity',
    null,
    null
  from utility.documents d
    left join ended on ended.id = d.id and ended.company_id = d.company_id
  where ended.at is not null
    or d.revised_document_id is not null
), moments as (
  select
    s.*,
    m.at,
    m.other_kind,
    m.other_by,
    case
      when s.revised_document_id is not null
        and s.deleted_at is null
        and s.raw is not null
        then analytics.superseded_by(s.id, m.at)
    end as superseded_by
  from states s
    cross join lateral (
      select s.began as at, null as other_kind, null as other_by
      union all
      select t.at, t.ended_by_kind, t.ended_by
      from analytics.superseding_times(s.id) as t
      -- A document that names no other stands for itself, whatever others do.
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
    deleted_at is not distinct from lag(deleted_at) over state
      and api_version is distinct from lag(api_version) over state
      and raw_updated is not distinct from lag(raw_updated) over state as is_read_otherwise
  from judged
  window state as (partition by company_id, id order by at)
), named as (
  select
    *,
    case
      when is_new then 'new'
      when is_read_otherwise then 'read_otherwise'
      when not_counted is not null then not_counted
      when not_counted_before is not null then 'restored'
      else 'corrected'
    end as change,
    not_counted is null as counts,
    not is_new and not_counted_before is null as counted
  from neighboured
  where raw is not null
    -- What counts neither before nor after is in no sum.
    and (not_counted is null or (not is_new and not_counted_before is null))
), changes as (
  select
    s.id as bill_id,
    s.company_id,
    s.site_id,
    n.account_number,
    n.provider,
    n.invoice_id,
    s.at as changed_at,
    s.changed_by_kind,
    s.changed_by,
    s.change,
    d.fields,
    a.currency,
    a.cost_before,
    a.cost_after,
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
      where not s.is_new
    ) d
    cross join lateral (
      select
        coalesce(o.current_charges, o.total_charges) as cost_before,
        coalesce(n.current_charges, n.total_charges) as cost_after,
        o.currency is not distinct from n.currency as in_one_currency
      offset 0
    ) c
    -- One row where it counts on one side alone, or in one currency on both; else one a currency.
    cross join lateral (
      select n.currency, c.cost_before, c.cost_after
      where s.counted and s.counts and c.in_one_currency
      union all
      select o.currency, c.cost_before, 0
      where s.counted and not (s.counts and c.in_one_currency)
      union all
      select n.currency, 0, c.cost_after
      where s.counts and not (s.counted and c.in_one_currency)
    ) a
  where s.is_new
    or s.counts <> s.counted
    or cardinality(d.fields) > 0
), always_the_same as (
  select
    d.id,
    d.company_id,
    d.site_id,
    d.raw,
    d.first_synced_at
  from utility.documents d
    left join (
      select distinct company_id, id
      from history.documents
    ) h on h.id = d.id and h.company_id = d.company_id
  where h.id is null
    and d.revised_document_id is null
    and d.raw is not null
    and d.deleted_at is null
), final as (
  select *
  from changes
  union all
  select
    d.id,
    d.company_id,
    d.site_id,
    n.account_number,
    n.provider,
    n.invoice_id,
    d.first_synced_at,
    null,
    null,
    'new',
    '{}',
    n.currency,
    0,
    coalesce(n.current_charges, n.total_charges),
    coalesce(n.current_charges, n.total_charges, 0),
    null
  from always_the_same d
    cross join lateral analytics.read_bill(d.raw) as n
)
select *
from final;
comment on view analytics.bill_changes is 'One row for each time that what a bill adds to sums may have changed, the first included; two where its currency changed, one a currency. Those between two times add up to the difference of bills_as_of.';

create or replace view analytics.bill_corrections as
with final as (
  select *
  from analytics.bill_changes
  where change not in ('new', 'read_otherwise')
)
select *
from final;
comment on view analytics.bill_corrections is 'One row for each bill and correction, two where its currency changed (one a currency): what was corrected in place, superseded, deleted or restored after it was first read, with what it did to cost. sum(cost_change) by currency is true.';
select metersync.comment_columns(view, '{
  "account_number": "Account at the provider, since.",
  "provider": "Utility that sent the bill.",
  "invoice_id": "The utility''s number of the bill, since.",
  "changed_at": "When the warehouse learnt of it: of the bill''s own change, or of that of the bill in its place.",
  "changed_by_kind": "event or run; NULL where neither is known.",
  "changed_by": "Id of the event or the run.",
  "fields": "What the bill tells otherwise, as bill_restatements names it; empty where another document changed.",
  "currency": "Currency of the amounts: never add those of several.",
  "cost_before": "What it added to sums; 0 where it did not count or the amount was of another currency, NULL where it told none.",
  "cost_after": "What it adds since, in the same way.",
  "cost_change": "How much sums changed with it.",
  "reason": "Why: how it was found deleted, the document that superseded it, or what brought it back; NULL for what was corrected in place, as the service tells no reason."
}') from unnest(array['analytics.bill_changes', 'analytics.bill_corrections']::regclass[]) as view;
select metersync.comment_columns('analytics.bill_changes', '{
  "change": "new: read for the first time; corrected, superseded, deleted, restored, not_read; read_otherwise: unchanged at the service, but read in another version of the API."
}');
select metersync.comment_columns('analytics.bill_corrections', '{
  "change": "corrected: in place; superseded: another bill took its place; deleted; restored: it counts again, or for the first time; not_read."
}');
