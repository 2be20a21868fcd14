-- Replaces the kept months of a company by those worked out now. Rows that stay the same stay.
-- Argument: of, the table.
with
  worked_out as materialized (
    select
      n as months,
      n::text as said
    from
      metersync.{{of}}_of (company) n
    where
      is_own
  ),
  kept as materialized (
    select
      k.ctid as place,
      k::text as said
    from
      metersync.{{of}} k
    where
      k.company_id = company
  ),
  gone as (
    delete from metersync.{{of}}
    where
      ctid = any (
        array(
          select
            k.place
          from
            kept k
            left join worked_out w using (said)
          where
            w.said is null
        )
      )
  )
insert into
  metersync.{{of}}
select
  (w.months).*
from
  worked_out w
  left join kept k using (said)
where
  k.said is null
