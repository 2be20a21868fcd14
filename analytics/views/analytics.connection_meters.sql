-- The meters for which a connection collects: the meters of its accounts. Meters are looked up by
-- their ids, because Postgres expects a hundred meters in each account, and would read all meters
-- to join them.
create or replace view analytics.connection_meters as
select distinct
  k.company_id,
  k.id as connection_id,
  a.account ->> 'id' as account_id,
  nullif(a.account ->> 'accountNumber', '') as account_number,
  m.meter_id, t.site_id, t.datasource_type,
  t.datasource_type as commodity,
  k.datasource as provider
from utility.connections k
  cross join jsonb_array_elements(metersync.elements(k.raw -> 'accounts')) as a (account)
  cross join jsonb_array_elements_text(metersync.elements(a.account -> 'meters')) as m (meter_id)
  left join lateral (
    select t.site_id, t.datasource_type
    from utility.meters t
    where t.id = m.meter_id
    offset 0
  ) t on true
where k.deleted_at is null;
comment on view analytics.connection_meters is
  'One row for each meter of each account of a connection.';
