-- Both functions run with their owner's rights, because analysts can read history only through
-- views.
create or replace function analytics.bills_as_of (at timestamptz) returns setof analytics.bills
language sql stable security definer
set search_path = pg_catalog, pg_temp as $$
  select metersync.require_known(at, null);
  {{bills documents="analytics.documents_at(at)" at="at"}} where is_effective
$$;

create or replace function analytics.bills_as_of (at timestamptz, company uuid)
returns setof analytics.bills
language sql stable security definer
set search_path = pg_catalog, pg_temp as $$
  select metersync.require_known(at, company);
  {{bills documents="(select * from analytics.documents_at(at) where company_id=company)" at="at"}}
  where is_effective
$$;
comment on function analytics.bills_as_of (timestamptz) is
  'analytics.bills as the warehouse would have shown it at a time, after every transaction that '
  'was over by then. A time before the warehouse had any bill is an error.';
comment on function analytics.bills_as_of (timestamptz, uuid) is
  'The same for one company, without reading the bills of others.';
