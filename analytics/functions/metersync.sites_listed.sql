-- The sites that the record of a connection, or an event about it, lists; one of several entries
-- about the same site.
create or replace function metersync.sites_listed (relations jsonb)
returns table (site_id uuid, account_ids text[], datasource_types text[])
language sql immutable as $$
  select distinct on (site_id) site_id, account_ids, datasource_types
  from jsonb_array_elements(relations) relation
    cross join lateral (
      select
        metersync.uuid_of(metersync.id_of(relation -> 'site')) as site_id,
        metersync.text_array(relation -> 'accountIds') as account_ids,
        metersync.text_array(relation -> 'datasourceTypes') as datasource_types
    ) said
  where site_id is not null
  order by site_id, account_ids, datasource_types
$$;
