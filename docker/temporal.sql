-- Creates the login of Temporal if it is missing, and sets its password. The superuser runs this at
-- each start.
do $$
begin
  if not exists (select from pg_roles where rolname = 'temporal') then
    create role temporal login;
  end if;
  execute format('alter role temporal password %L', current_setting('temporal.password'));
end $$;
