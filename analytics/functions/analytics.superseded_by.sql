-- Follows the chain of links to the document that replaced a document. If the replacing document is
-- deleted, the document that superseded it takes its place. A document that was not read yet
-- counts. In a ring of links, the document that was created last counts.
create or replace function analytics.superseded_by (document_id uuid, at timestamptz default null)
returns uuid
language sql stable parallel safe security definer
set search_path = pg_catalog, pg_temp as $$
  with recursive chain(id, next, created, live, path) as (
    select
      document_id, s.revised_document_id, s.created, s.deleted_at is null, array[document_id]
    from analytics.document_state(document_id, at) s
    union all
    select
      c.next, s.revised_document_id, s.created, s.deleted_at is null, c.path || c.next
    from chain c
      left join lateral analytics.document_state(c.next, at) s on true
    where c.next is not null
      and c.next <> all(c.path)
  ), ring(closed) as (
    select coalesce(next = document_id, false)
    from chain
    order by cardinality(path) desc
    limit 1
  )
  select nullif(
    (
      select c.id
      from chain c, ring r
      where c.live
        and (r.closed or c.id <> document_id)
      order by
        case when r.closed then c.created end desc nulls last,
        case when r.closed then c.id end desc,
        cardinality(c.path) desc
      limit 1
    ),
    document_id
  )
$$;
comment on function analytics.superseded_by is
  'The live document at the end of the chain of documents that superseded this one; NULL if '
  'nothing superseded it.';
