-- Whether the months of a company rest on its own records alone: no other company's change concerns
-- them. A record that is missing may yet come, of another company. Without any meter none will.
create or replace function metersync.has_own_records (company uuid) returns boolean language sql stable
set
  enable_nestloop = on
set
  enable_seqscan = off
set
  enable_bitmapscan = off
set
  enable_hashjoin = off
set
  enable_mergejoin = off
set
  enable_memoize = off
set
  plan_cache_mode = force_generic_plan as $$
  select
    not exists (
      select
      from utility.usage_data u
        left join utility.documents d on d.id = u.document_id
        left join utility.meters m on m.id = u.meter_id
      where u.company_id = company
        and u.deleted_at is null
        and (
          u.document_id is not null
          and d.company_id is distinct from company
          or u.meter_id is not null
          and m.company_id is distinct from company
          and exists (select from utility.meters)
        )
    )
    and not exists (
      select
      from utility.documents d
        left join utility.documents successor on successor.id = d.revised_document_id
      where d.company_id = company
        and d.revised_document_id is not null
        and successor.company_id is distinct from company
    )
$$;
comment on function metersync.has_own_records is 'Whether all records that the months of a company rest on are its own.';
