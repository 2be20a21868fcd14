-- Company and connection are the columns of freshness, so that a query for one company or
-- connection does not compute the bills of others.
create or replace view analytics.connections_needing_attention as
select
  f.company_id, f.company, f.connection_id, u.provider, u.status, u.status_class, u.since,
  u.what_to_do, u.customer_must_act, u.detail, u.url, u.owner,
  f.utility_published_until as data_until,
  f.is_late,
  array(
    select distinct m.site_id
    from analytics.connection_meters m
    where m.company_id = f.company_id
      and m.connection_id = f.connection_id
      and m.site_id is not null
  ) as site_ids,
  f.days_late,
  (
    select string_agg(distinct s.name, ', ')
    from analytics.connection_meters m
      join utility.sites s on s.id = m.site_id
    where m.company_id = f.company_id
      and m.connection_id = f.connection_id
  ) as sites
from analytics.freshness f
  cross join lateral (
    select *
    from metersync.unwell_connections u
    where u.connection_id = f.connection_id
    offset 0
  ) u
where metersync.needs_attention(f.status);
comment on view analytics.connections_needing_attention is
  'Connections that collect nothing: what is wrong, since when, and what to do.';
comment on column analytics.connections_needing_attention.since is 'When the status began.';
comment on column analytics.connections_needing_attention.detail is 'The service''s own words.';
comment on column analytics.connections_needing_attention.url is
  'Address of the provider''s portal.';
comment on column analytics.connections_needing_attention.owner is 'Who set it up.';
comment on column analytics.connections_needing_attention.data_until is 'Last day that is billed.';
comment on column analytics.connections_needing_attention.days_late is
  'Days since the next bill was expected; NULL if not late.';
comment on column analytics.connections_needing_attention.sites is 'Names of its sites.';
