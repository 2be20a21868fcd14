-- The login of Temporal, run by the superuser at each start: made if it is missing, with the
-- password of now.
do $$
begin
  if not exists (select from pg_roles where rolname = 'temporal') then
    create role temporal login;
  end if;
  execute format('alter role temporal password %L', current_setting('temporal.password'));
end $$;
