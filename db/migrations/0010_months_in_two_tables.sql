-- Months are kept in two tables, and are worked out again for each company that changed. What earlier
-- views read of the tables that go stays until the new views are there: db/gone.ts drops it then.
-- squawk-ignore prefer-timestamptz
create table "metersync"."months_kept" (
  "company_id" uuid primary key not null,
  "kept_at" timestamp(6) with time zone not null
);

--> statement-breakpoint
comment on table metersync.months_kept is 'When the months of each company were last worked out.';
comment on column metersync.months_kept.company_id is 'The company.';
comment on column metersync.months_kept.kept_at is 'When its months were last worked out.';

--> statement-breakpoint
-- Finds the documents that others name as their successor. Both statements wait for writers of
-- documents, and building the index takes a second for a million documents.
-- squawk-ignore require-concurrent-index-deletion
drop index "utility"."documents_revised";

--> statement-breakpoint
-- squawk-ignore require-concurrent-index-creation
create index "documents_successor" on "utility"."documents" using btree("revised_document_id")
where revised_document_id is not null;

--> statement-breakpoint
-- Notes the companies whose records changed, in the transaction of the change. Records of other
-- companies may name a record that is deleted, or one without a company: these concern all. So do
-- the first meters of all, as no record needs its meter until then, and what is no record.
create or replace function metersync.note_changes()
returns trigger
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
as $$
declare
  is_first boolean := false;
begin
  if TG_NARGS = 0 or TG_OP = 'TRUNCATE' then
    insert into metersync.company_changes (company_id) values (null);
  elsif TG_OP = 'INSERT' then
    if TG_TABLE_NAME = 'meters' then
      select bool_or(company_id is null) or count(*) > 0 and count(*) = (
        select count(*) from (
          select from utility.meters order by id limit (select count(*) + 1 from new_rows)
        ) there)
      into is_first from new_rows;
    end if;
    insert into metersync.company_changes (company_id)
    select distinct company_id from new_rows where company_id is not null
    union all
    select null where is_first;
  elsif exists (select from old_rows) then
    insert into metersync.company_changes (company_id) values (null);
  end if;
  return null;
end
$$;
