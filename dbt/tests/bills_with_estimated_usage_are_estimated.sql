-- A bill is estimated if any of its usage is. A query that returns rows shows bills that are not.
select b.bill_id
from {{ ref('stg_bills') }} as b
join {{ ref('stg_usage') }} as u on u.bill_id = b.bill_id
where u.is_estimated and not b.is_estimated
