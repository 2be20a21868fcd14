-- Reads the state of one document at a time, or its current state if the time is NULL.
create or replace function analytics.document_state (document_id uuid, at timestamptz) returns table (revised_document_id uuid, created timestamptz, deleted_at timestamptz) language sql stable parallel safe security definer
set
  search_path = pg_catalog,
  pg_temp as $$
  select
    d.revised_document_id,
    d.created,
    d.deleted_at
  from utility.documents d
  where d.id = document_id
    and (
      at is null
      or d.first_synced_at <= at
      and not exists (
        select
        from history.documents h
        where h.id = d.id
          and h.valid_to > at
      )
    )
  union all
  select
    h.revised_document_id,
    h.created,
    h.deleted_at
  from history.documents h
  where h.id = document_id
    and h.valid_from <= at
    and at < h.valid_to
$$;
comment on function analytics.document_state is 'The part of a document at a time that superseded_by reads.';
