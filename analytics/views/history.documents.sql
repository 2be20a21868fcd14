create or replace view history.documents as
select
  id, company_id, site_id, created, updated, raw_updated, usage_read_at, raw, api_version,
  first_synced_at, synced_at, deleted_at, deleted_reason, revised_document_id, valid_from, valid_to,
  ended_by_kind, ended_by
from metersync.earlier_states
where resource = 'documents';
comment on view history.documents is 'Earlier states of utility.documents.';
