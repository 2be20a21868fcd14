create or replace view history.sites as
select
  id, company_id, name, raw, api_version, first_synced_at, synced_at, deleted_at, deleted_reason,
  valid_from, valid_to, ended_by_kind, ended_by
from metersync.earlier_states
where resource = 'sites';
comment on view history.sites is 'Earlier states of utility.sites.';
