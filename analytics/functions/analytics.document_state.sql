-- Reads the state of one document at a time, or its current state if the time is NULL.
create or replace function analytics.document_state (document_id uuid, at timestamptz)
returns table (revised_document_id uuid, created timestamptz, deleted_at timestamptz)
language sql stable parallel safe security definer
set search_path = pg_catalog, pg_temp as $$
  select d.revised_document_id, d.created, d.deleted_at
  from analytics.documents_at(coalesce(at, 'infinity')) d
  where d.id = document_id
$$;
comment on function analytics.document_state is
  'The part of a document at a time that superseded_by reads.';
