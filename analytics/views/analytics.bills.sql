create or replace view analytics.bills as
select *
from analytics.bills_all
where is_effective;
comment on view analytics.bills is
  'One row for each bill that counts: it exists, was read, and is not superseded.';
select metersync.copy_comments('analytics.bills_all', 'analytics.bills');
