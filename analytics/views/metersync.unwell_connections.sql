-- Connections that collect nothing, with the columns of analytics.connections_needing_attention
-- that do not depend on bills, so that no bills are computed to find these connections.
create or replace view metersync.unwell_connections as
select
  k.company_id,
  k.id as connection_id,
  k.datasource as provider,
  k.status,
  analytics.status_class(k.status) as status_class,
  s.since,
  analytics.what_to_do(k.status, s.since) as what_to_do,
  metersync.customer_must_act(k.status) as customer_must_act,
  nullif(k.raw ->> 'statusErrorDetail', '') as detail,
  k.url,
  k.raw ->> 'workflowOwnerEmail' as owner
from utility.connections k
  cross join lateral (
    select greatest(max(h.at), metersync.time_of(k.raw ->> 'statusFirstSeenTime')) as since
    from utility.connection_status_changes h
    where h.connection_id = k.id
      and h.status = k.status
  ) s
where k.deleted_at is null
  and metersync.needs_attention(k.status);
comment on view metersync.unwell_connections is
  'Connections that collect nothing, like analytics.connections_needing_attention, without what '
  'depends on their bills.';
