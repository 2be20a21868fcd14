-- Returns the documents as the warehouse had them at a time.
create or replace function analytics.documents_at (at timestamptz)
returns table (
  id uuid, company_id uuid, site_id uuid, created timestamptz, updated timestamptz, raw jsonb,
  api_version text, deleted_at timestamptz, deleted_reason text, revised_document_id uuid
)
language sql stable parallel safe as $$
  select
    d.id, d.company_id, d.site_id, d.created, d.updated, d.raw, d.api_version, d.deleted_at,
    d.deleted_reason, d.revised_document_id
  from utility.documents d
  where d.first_synced_at <= at
    and not exists (select from history.documents h where h.id = d.id and h.valid_to > at)
  union all
  select
    h.id, h.company_id, h.site_id, h.created, h.updated, h.raw, h.api_version, h.deleted_at,
    h.deleted_reason, h.revised_document_id
  from history.documents h
  where h.valid_from <= at
    and at < h.valid_to
$$;
comment on function analytics.documents_at is 'Documents as the warehouse had them at a time.';
