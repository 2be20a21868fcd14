create or replace view analytics.connections_needing_attention as
select
  f.company_id,
  c.name as company,
  f.connection_id,
  f.provider,
  f.status,
  f.status_class,
  greatest(s.since, metersync.time_of(k.raw ->> 'statusFirstSeenTime')) as since,
  analytics.what_to_do(f.status) as what_to_do,
  f.status_class in ('needs_customer', 'inactive')
  or f.status = 'NO_ACCOUNTS_FOUND' as customer_must_act,
  nullif(k.raw ->> 'statusErrorDetail', '') as detail,
  k.url,
  k.raw ->> 'workflowOwnerEmail' as owner,
  f.utility_published_until as data_until,
  f.is_late,
  array(
    select distinct
      m.site_id
    from analytics.connection_meters m
    where m.company_id = f.company_id
      and m.connection_id = f.connection_id
      and m.site_id is not null
  ) as site_ids
from analytics.freshness f
  join utility.connections k on k.id = f.connection_id
  left join utility.companies c on c.id = f.company_id
  left join lateral (
    select max(h.at) as since
    from utility.connection_status_changes h
    where h.connection_id = k.id
      and h.status = k.status
  ) s on true
where f.status_class not in ('healthy')
  and f.status <> 'PENDING';

comment on view analytics.connections_needing_attention is
  'Connections that collect nothing, and what to do.';
comment on column analytics.connections_needing_attention.company is 'Name of the company.';
comment on column analytics.connections_needing_attention.provider is 'Utility that bills.';
comment on column analytics.connections_needing_attention.status is
  'PENDING, CONNECTED, MFA_TOKEN_EXPIRED, …';
comment on column analytics.connections_needing_attention.status_class is
  'healthy, waiting, needs_customer, provider_problem, inactive or unknown.';
comment on column analytics.connections_needing_attention.since is
  'When the status began, by events or the record.';
comment on column analytics.connections_needing_attention.what_to_do is 'What to do.';
comment on column analytics.connections_needing_attention.customer_must_act is
  'Customer must act.';
comment on column analytics.connections_needing_attention.detail is 'The service''s own words.';
comment on column analytics.connections_needing_attention.url is 'Provider''s portal.';
comment on column analytics.connections_needing_attention.owner is 'Who set it up.';
comment on column analytics.connections_needing_attention.data_until is
  'Last day that is billed.';
comment on column analytics.connections_needing_attention.is_late is
  'Whether the next bill is overdue.';
comment on column analytics.connections_needing_attention.site_ids is 'Its sites.';
