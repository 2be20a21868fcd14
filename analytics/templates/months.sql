-- Rows of a view of months: kept ones of companies that did not change since, those of the others
-- as they are worked out now. The views add those without a company with a literal NULL for it, so
-- that Postgres leaves this branch out of the plan of a question about a company.
-- Arguments: of, the table that keeps them; more, further columns. They stand here, as a select
-- around would be a step of its own for each row.
select
  * {{more}}
from
  metersync.{{of}} k
where
  exists (
    select
    from
      metersync.kept_companies c
    where
      c.company_id = k.company_id
  )
union all
select
  * {{more}}
from
  metersync.changed_companies c
  join lateral metersync.{{of}}_of (c.company_id) using (company_id)
