DO $$
DECLARE described record;
BEGIN
  for described in select unnest(array['companies', 'sites', 'connections', 'documents', 'usage_data', 'meters']) as relname
  loop
    execute format('comment on column utility.%I.deleted_reason is %L', described.relname, 'event: a delete event said so; absent: a complete, stable listing no longer had it; listed: the service lists it among deleted ones; not_found: its own endpoint answered 404; document: its document is gone.');
  end loop;
end
$$;
