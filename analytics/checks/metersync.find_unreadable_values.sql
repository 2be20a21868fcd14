-- Values of a company's records that no column holds, each with its record, field and text. It
-- returns at most a thousand values and 200 characters of each: if a service writes all values of a
-- field in another way, more issues would not say more. metersync status counts all values.
create or replace function metersync.find_unreadable_values (company uuid)
returns table (check_name text, entity_id text, subject text, evidence jsonb)
language sql stable rows 20
set enable_hashjoin = off
set enable_mergejoin = off as $$
  with records as (
    select 'company' as entity_type, id::text as id, unreadable
    from utility.companies
    where id = company
      and deleted_at is null
      and unreadable is not null
    union all
    select 'site', id::text, unreadable
    from utility.sites
    where company_id = company
      and deleted_at is null
      and unreadable is not null
    union all
    select 'connection', id::text, unreadable
    from utility.connections
    where company_id = company
      and deleted_at is null
      and unreadable is not null
    union all
    select 'meter', id, unreadable
    from utility.meters
    where company_id = company
      and deleted_at is null
      and unreadable is not null
    union all
    select 'document', id::text, unreadable
    from utility.documents
    where company_id = company
      and deleted_at is null
      and unreadable is not null
    union all
    select 'usage', id::text, unreadable
    from utility.usage_data
    where company_id = company
      and deleted_at is null
      and unreadable is not null
  )
  select
    'unreadable_value', r.id, f.field,
    jsonb_build_object(
      'entity_type', r.entity_type,
      'field', f.field,
      'text', f.text,
      'said', '"' || f.text || '"'
    )
  from records r
    cross join lateral jsonb_each_text(r.unreadable) as sent(field, text)
    cross join lateral (select sent.field, left(sent.text, 200) as text) f
  order by r.entity_type, r.id, f.field
  limit 1000
$$;
