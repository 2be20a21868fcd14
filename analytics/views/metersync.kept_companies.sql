-- Companies that did not change since their months were kept, as far as these hold today.
create or replace view metersync.kept_companies as
select
  m.company_id
from
  metersync.company_months m
where
  current_date >= m.valid_from
  and current_date < m.valid_until
  and not exists (
    select
    from
      metersync.company_changes c
    where
      c.company_id = m.company_id
  )
  and not exists (
    select
    from
      metersync.company_changes c
    where
      c.company_id is null
  );
comment on view metersync.kept_companies is 'Companies whose months are kept.';
comment on column metersync.kept_companies.company_id is 'The company.';
