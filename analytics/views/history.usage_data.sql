create or replace view history.usage_data as
select
  id, company_id, document_id, meter_id, start_date, end_date, usage, usage_units, created, updated,
  raw, api_version, first_synced_at, synced_at, deleted_at, deleted_reason, is_estimated, exclusion,
  net_metering_type, billed_demand, valid_from, valid_to, ended_by_kind, ended_by
from metersync.earlier_states
where resource = 'usageData';
comment on view history.usage_data is 'Earlier states of utility.usage_data.';
