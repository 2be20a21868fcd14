create or replace view history.meters as
select
  meter_id as id,
  company_id, site_id, account_id, datasource_type, raw, api_version, first_synced_at, synced_at,
  deleted_at, deleted_reason, valid_from, valid_to, ended_by_kind, ended_by
from metersync.earlier_states
where resource = 'meters';
comment on view history.meters is 'Earlier states of utility.meters.';
