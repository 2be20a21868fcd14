-- The logins of docker-compose.yml, run by the superuser at each start: what is missing is made,
-- passwords are those of now.
do $$
declare
  role text;
begin
  foreach role in array array[
    'metersync_writer', 'metersync_analyst', 'metersync_migrator', 'metersync_worker'
  ] loop
    if not exists (select from pg_roles where rolname = role) then
      execute format('create role %I nologin', role);
    end if;
  end loop;
  execute format(
    'alter role metersync_migrator login password %L',
    current_setting('metersync.migrator_password')
  );
  execute format(
    'alter role metersync_worker login password %L',
    current_setting('metersync.worker_password')
  );
  grant metersync_writer to metersync_worker;

  -- The owner may make schemas in it. Whoever has no role does not get in.
  execute format('alter database %I owner to metersync_migrator', current_database());
  execute format('revoke all on database %I from public', current_database());
  execute format('grant connect, temporary on database %I to metersync_writer', current_database());
  execute format('grant connect on database %I to metersync_analyst', current_database());
end $$;
