-- The account of a meter is the account of a connection that collects for the meter, or else the
-- account of its newest bill. Bills and readings are looked up by the meter.
create or replace view analytics.meters as
with collected as (
  select
    company_id, meter_id,
    min(account_number) as account_number,
    min(provider) as provider
  from analytics.connection_meters
  group by company_id, meter_id
)
select
  m.id as meter_id,
  metersync.meter_number(m.raw) as meter_number,
  m.datasource_type as commodity,
  m.company_id,
  c.name as company,
  m.site_id,
  s.name as site,
  coalesce(nullif(m.raw ->> 'address', ''), s.raw ->> 'address') as address,
  coalesce(k.provider, b.provider) as provider,
  coalesce(k.account_number, b.account_number) as account_number,
  coalesce(z.time_zone, 'UTC') as time_zone,
  coalesce(z.time_zone_source, 'default') as time_zone_source,
  metersync.boolean_of(m.raw ->> 'isTracked') as is_tracked,
  least(b.first_day, (i.first_at at time zone coalesce(z.time_zone, 'UTC'))::date) as first_day,
  greatest(b.last_day, (i.last_at at time zone coalesce(z.time_zone, 'UTC'))::date) as last_day,
  b.last_day as billed_until,
  i.last_at as last_reading_at
from utility.meters m
  left join utility.companies c on c.id = m.company_id
  left join utility.sites s on s.id = m.site_id
  left join analytics.site_time_zones z on z.site_id = m.site_id
  left join collected k on k.company_id = m.company_id and k.meter_id = m.id
  cross join lateral (
    select
      min(metersync.first_day(u.start_date, u.end_date)) as first_day,
      max(metersync.last_day(u.start_date, u.end_date)) as last_day,
      (array_agg(d.account_number order by u.end_date desc nulls last, u.id))[1] as account_number,
      (array_agg(d.provider order by u.end_date desc nulls last, u.id))[1] as provider
    from utility.usage_data u
      left join lateral (
        select
          case
            when d.deleted_at is not null then true
            when d.revised_document_id is null then false
            else analytics.superseded_by(d.id) is not null
          end as is_gone,
          r.account_number, r.provider
        from utility.documents d
          -- Records are unpacked only if no connection has the account.
          left join lateral (
            select b.account_number, b.provider
            from analytics.read_bill(d.raw) b
            where k.meter_id is null
          ) r on true
        where d.id = u.document_id
        offset 0
      ) d on true
    where u.meter_id = m.id
      and u.deleted_at is null
      and d.is_gone is not true
    offset 0
  ) b
  cross join lateral (
    select
      (select min(start_at) from utility.intervals where meter_id = m.id) as first_at,
      (select max(start_at) from utility.intervals where meter_id = m.id) as last_at
    offset 0
  ) i
where m.deleted_at is null;
comment on view analytics.meters is
  'One row for each live meter, with the names and numbers by which people know it.';
comment on column analytics.meters.address is 'Address of the meter, or else of its site.';
comment on column analytics.meters.provider is
  'Utility of its connection, or else of its newest bill.';
comment on column analytics.meters.is_tracked is 'Whether the service collects for it.';
comment on column analytics.meters.first_day is 'First day with data: billed, or with a reading.';
comment on column analytics.meters.last_day is 'Last day with data: billed, or with a reading.';
comment on column analytics.meters.billed_until is 'Last day that is billed.';
comment on column analytics.meters.last_reading_at is 'Start of its last reading.';
