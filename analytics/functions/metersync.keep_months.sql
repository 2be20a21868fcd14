-- Works out the months of some companies whose records changed, and keeps them. The notes of
-- changes go first: a change that is not seen here has a note that stays, also one whose
-- transaction has not ended yet. The oldest note is served first, young ones wait. Joins are by
-- hash, as a company may have many months. Where a record begins later than today, they end with
-- today's month.
create or replace function metersync.keep_months (companies_max integer, quiet interval) returns integer language plpgsql
set
  enable_seqscan = off
set
  enable_bitmapscan = off
set
  enable_nestloop = off
set
  enable_mergejoin = off as $$
declare
  company uuid;
  is_own boolean;
  settled_from date;
  this_month date;
  kept integer := 0;
begin
  -- What concerns all becomes a note for each: the others are none, or have one.
  with everything as (
    delete from metersync.company_changes
    where company_id is null
    returning changed_at
  )
  insert into metersync.company_changes (company_id, changed_at)
  select m.company_id, e.changed_at
  from (select min(changed_at) as changed_at from everything) e
    cross join metersync.company_months m
  where e.changed_at is not null;

  while kept < companies_max loop
    select company_id
    into company
    from metersync.company_changes
    where changed_at <= clock_timestamp() - quiet
      and company_id is not null
    order by changed_at
    limit 1;
    if not found then
      select company_id
      into company
      from metersync.company_months
      where valid_until <= current_date
      order by valid_until
      limit 1;
    end if;
    exit when not found;

    delete from metersync.company_changes where company_id = company;
    is_own := metersync.has_own_records(company);

    {{replace_months of="monthly_usage"}};
    {{replace_months of="monthly_cost"}};

    this_month := date_trunc('month', current_date);
    select date_trunc('month', max(metersync.first_day(start_date, end_date))) - interval '1 day'
    into settled_from
    from utility.usage_data
    where company_id = company
      and deleted_at is null;
    insert into metersync.company_months (company_id, made_at, valid_from, valid_until)
    select
      company,
      clock_timestamp(),
      case
        when not is_own then 'infinity'
        when settled_from > current_date then this_month
        else coalesce(settled_from, '-infinity')
      end,
      case
        when is_own and settled_from > current_date then this_month + interval '1 month'
        else 'infinity'
      end
    on conflict (company_id) do update
    set
      made_at = excluded.made_at,
      valid_from = excluded.valid_from,
      valid_until = excluded.valid_until;

    -- The months are kept now, so that sums of them add up what is kept.
    {{replace_months of="monthly_usage_by_site"}};
    {{replace_months of="monthly_usage_by_company"}};
    {{replace_months of="monthly_cost_by_site"}};
    {{replace_months of="monthly_cost_by_company"}};
    {{replace_months of="monthly_by_site"}};
    kept := kept + 1;
  end loop;
  return kept;
end
$$;
comment on function metersync.keep_months is 'Works out the months of companies that changed; returns how many.';
-- New versions of views may find something else.
insert into
  metersync.company_changes (company_id)
values
  (null);
