create or replace view metersync.changed_companies as
with
  companies as (
    select
      id as company_id
    from
      utility.companies
    union
    select
      company_id
    from
      metersync.company_months
    union
    select
      company_id
    from
      metersync.company_changes
    where
      company_id is not null
  )
select
  c.company_id
from
  companies c
where
  not exists (
    select
    from
      metersync.kept_companies k
    where
      k.company_id = c.company_id
  );
comment on view metersync.changed_companies is 'Companies whose months are worked out for each question.';
comment on column metersync.changed_companies.company_id is 'The company.';
