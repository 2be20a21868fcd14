-- floor: 2
-- Open issues are listed by one index in their order, and those of a check by another. Both are small: they
-- have the open issues only. Look-ups of one issue do not say `id > 0`, or a plan that is kept could read
-- all issues of a check for it.
-- squawk-ignore-file require-concurrent-index-creation, require-concurrent-index-deletion
DROP INDEX "ops"."data_issues_acknowledged";--> statement-breakpoint
CREATE INDEX "data_issues_listed" ON "ops"."data_issues" USING btree ((case severity when 'error' then 3 when 'warning' then 2 else 1 end + case when acknowledged_at is null then 3 else 0 end),"may_cost","opened_at","id") WHERE closed_at is null and id > 0;--> statement-breakpoint
CREATE INDEX "data_issues_of_check" ON "ops"."data_issues" USING btree ("check_name",(case severity when 'error' then 3 when 'warning' then 2 else 1 end + case when acknowledged_at is null then 3 else 0 end),"may_cost","opened_at","id") WHERE closed_at is null and id > 0;