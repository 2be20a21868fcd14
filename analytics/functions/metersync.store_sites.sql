-- Replaces the sites of a connection by those that its record, or an event about it, lists.
create or replace function metersync.store_sites (of_connection uuid, relations jsonb) returns void
language plpgsql as $$
begin
  delete from utility.connection_sites
  where connection_id = of_connection
    and site_id not in (select listed.site_id from metersync.sites_listed(relations) listed);
  insert into utility.connection_sites as held
    (connection_id, site_id, account_ids, datasource_types)
  select of_connection, listed.site_id, listed.account_ids, listed.datasource_types
  from metersync.sites_listed(relations) listed
  order by listed.site_id
  on conflict (connection_id, site_id) do update set
    account_ids = excluded.account_ids,
    datasource_types = excluded.datasource_types
  where (held.account_ids, held.datasource_types)
    is distinct from (excluded.account_ids, excluded.datasource_types);
end $$;
