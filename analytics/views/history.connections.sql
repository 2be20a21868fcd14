create or replace view history.connections as
select
  id, company_id, external_id, datasource, status, url, created, updated, raw_updated, raw,
  api_version, first_synced_at, synced_at, deleted_at, deleted_reason, valid_from, valid_to,
  ended_by_kind, ended_by
from metersync.earlier_states
where resource = 'connections';
comment on view history.connections is 'Earlier states of utility.connections.';
