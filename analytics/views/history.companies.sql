create or replace view history.companies as
select
  id, external_id, public_id, name, raw, api_version, first_synced_at, synced_at, deleted_at,
  deleted_reason, valid_from, valid_to, ended_by_kind, ended_by
from metersync.earlier_states
where resource = 'companies';
comment on view history.companies is 'Earlier states of utility.companies.';
