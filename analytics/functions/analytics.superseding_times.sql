-- Follows the present and earlier links of a document, and returns the times at which the documents
-- that it reaches changed. Of all changes of other documents, only these can decide whether the
-- document counts.
create or replace function analytics.superseding_times (document_id uuid)
returns table (at timestamptz, ended_by_kind text, ended_by text)
language sql stable parallel safe rows 4 security definer
set search_path = pg_catalog, pg_temp as $$
  with recursive reached(id) as (
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
      ) link(next)
    where link.next is not null
  ), times as (
    select
      d.first_synced_at as at,
      null as ended_by_kind,
      null as ended_by
    from reached r
      join utility.documents d on d.id = r.id
    where r.id <> document_id
    union all
    select h.valid_to, h.ended_by_kind, h.ended_by
    from reached r
      join history.documents h on h.id = r.id
    where r.id <> document_id
  )
  select at, min(ended_by_kind), min(ended_by)
  from times
  group by at
$$;
comment on function analytics.superseding_times is
  'The times at which documents changed that replace, or replaced, this document.';
