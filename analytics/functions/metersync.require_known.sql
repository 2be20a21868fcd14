-- Refuses a time at which the warehouse had no bill yet although it has bills now, because it is
-- not known that there were no bills then. NULL as the company means all companies.
create or replace function metersync.require_known (at timestamptz, company uuid) returns void
language plpgsql stable as $$
declare
  since timestamptz;
begin
  if exists (
    select
    from utility.documents
    where first_synced_at <= at
      and (company is null or company_id = company)
  ) then
    return;
  end if;
  select min(first_synced_at)
  into since
  from utility.documents
  where company is null
    or company_id = company;
  if since is not null then
    raise exception 'the warehouse knows no bills before %: it read the first of them then',
      to_char(since at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS.US"Z"')
      using errcode = 'invalid_parameter_value';
  end if;
end
$$;
