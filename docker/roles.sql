-- Creates the logins of docker-compose.yml. The superuser runs this at each start. It creates
-- missing roles and gives each login its present password.
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

  -- The owner may create schemas in the database. Only logins with one of these roles can connect.
  execute format('alter database %I owner to metersync_migrator', current_database());
  execute format('revoke all on database %I from public', current_database());
  execute format('grant connect, temporary on database %I to metersync_writer', current_database());
  execute format('grant connect on database %I to metersync_analyst', current_database());
end $$;
