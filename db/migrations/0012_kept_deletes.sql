-- floor: 1
-- Rows that somebody decided to keep are left alone by runs, until a listing shows them again. Each
-- listing asks for them. There are few, so the index is built in no time.
-- squawk-ignore require-concurrent-index-creation
create index "deletes_kept" on "metersync"."deletes" using btree("company_id", "resource")
where state in ('rejected', 'undone');
