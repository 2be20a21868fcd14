create or replace view metersync.changed_companies as
select id as company_id
from utility.companies
union
select company_id
from metersync.company_months
union
select company_id
from metersync.company_changes
where company_id is not null
except
select company_id
from metersync.kept_companies;

comment on view metersync.changed_companies is
  'Companies whose months are worked out for each question.';
