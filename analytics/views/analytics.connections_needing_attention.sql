create or replace view analytics.connections_needing_attention as
select
  u.company_id,
  c.name as company,
  u.connection_id,
  u.provider,
  u.status,
  u.status_class,
  u.since,
  u.what_to_do,
  u.customer_must_act,
  u.detail,
  u.url,
  u.owner,
  f.utility_published_until as data_until,
  f.is_late,
  array(
    select distinct
      m.site_id
    from analytics.connection_meters m
    where m.company_id = u.company_id
      and m.connection_id = u.connection_id
      and m.site_id is not null
  ) as site_ids
from metersync.unwell_connections u
  join analytics.freshness f on f.connection_id = u.connection_id
  left join utility.companies c on c.id = u.company_id;

comment on view analytics.connections_needing_attention is
  'Connections that collect nothing: what is wrong, since when, what to do.';
comment on column analytics.connections_needing_attention.company is 'Name of the company.';
comment on column analytics.connections_needing_attention.provider is
  'Utility that sent the bill.';
comment on column analytics.connections_needing_attention.status is
  'An open list: PENDING, CONNECTED, MFA_TOKEN_EXPIRED, …';
comment on column analytics.connections_needing_attention.status_class is
  'healthy, waiting, needs_customer, provider_problem, inactive; unknown where it is not '
  'documented.';
comment on column analytics.connections_needing_attention.since is
  'When the status began, by events or the record.';
comment on column analytics.connections_needing_attention.what_to_do is 'What to do.';
comment on column analytics.connections_needing_attention.customer_must_act is
  'Customer must act.';
comment on column analytics.connections_needing_attention.detail is 'The service''s own words.';
comment on column analytics.connections_needing_attention.url is
  'Address of the provider''s portal.';
comment on column analytics.connections_needing_attention.owner is 'Who set it up.';
comment on column analytics.connections_needing_attention.data_until is
  'Last day that is billed.';
comment on column analytics.connections_needing_attention.is_late is
  'Whether the next bill is overdue; NULL without any bill.';
comment on column analytics.connections_needing_attention.site_ids is 'Its sites.';
