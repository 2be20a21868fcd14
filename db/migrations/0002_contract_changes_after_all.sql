-- floor: 1
-- What the first backfill of all companies reads is no change of the contract. A run of chosen
-- companies saw too little of it. Fields are noted some time after they were read.
create or replace function metersync.note_contract_changes()
returns trigger
language plpgsql
as $$
declare
  baseline boolean := not exists (
    select
    from metersync.field_catalogue root
      join metersync.runs r on r.finished_at > root.first_seen_at
    where root.resource = new.resource
      and root.api_version = new.api_version
      and root.path = ''
      and r.company_id is null
      and r.resource is null
      and r.kind = 'full'
      and r.state <> 'failed'
      and r.finished_at < now() - interval '10 minutes'
      and not exists (
        select
        from metersync.run_companies chosen
        where chosen.run_id = r.run_id
      ));
begin
  if tg_op = 'INSERT' then
    insert into ops.contract_changes (resource, api_version, path, change, value, is_baseline)
    values (
      new.resource,
      new.api_version,
      new.path,
      case when new.path = '' then 'resource' else 'path' end,
      array_to_string(new.types, ', '),
      baseline
    );
    return null;
  end if;
  insert into ops.contract_changes (resource, api_version, path, change, value, is_baseline)
  select new.resource, new.api_version, new.path, 'type', type, baseline
  from unnest(new.types) type
  where type <> all (old.types)
  union all
  select new.resource, new.api_version, new.path, 'value', value, baseline
  from unnest(new.enum_values) value
  where value <> all (old.enum_values);
  return null;
end
$$;
