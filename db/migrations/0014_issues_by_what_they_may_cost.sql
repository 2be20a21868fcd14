-- floor: 14
-- Issues are listed by what they may cost. Checks write few issues, so the column and the index are built in
-- a moment.
-- squawk-ignore require-concurrent-index-deletion
drop index "ops"."data_issues_new";
--> statement-breakpoint
alter table "ops"."data_issues"
-- squawk-ignore adding-field-with-default
add column "may_cost" numeric generated always as (coalesce((evidence ->> 'may_cost')::numeric, 0)) stored not null;
--> statement-breakpoint
-- squawk-ignore require-concurrent-index-creation
create index "data_issues_new" on "ops"."data_issues" using btree(
  "check_name", "severity", "may_cost", "opened_at", "id"
)
where closed_at is null
  and acknowledged_at is null;
--> statement-breakpoint
comment on column ops.data_issues.may_cost is
  'What a gap between bills may cost, by the usual cost of a day, in the currency of its evidence; otherwise 0.';
