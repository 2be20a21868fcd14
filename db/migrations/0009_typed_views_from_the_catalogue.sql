-- The typed views are worked out from the catalogue of fields alone; `metersync migrate` makes them
-- again after this. Looks of older workers read the view that goes, so this migration names no
-- floor: they have to be stopped first.
drop view if exists ops.typed_columns;

--> statement-breakpoint
drop function if exists metersync.make_typed_view(jsonb, boolean);

--> statement-breakpoint
drop function if exists metersync.is_typed_view(oid);

--> statement-breakpoint
drop function if exists metersync.within(text, jsonb, boolean);

--> statement-breakpoint
-- squawk-ignore ban-drop-table
drop table "metersync"."typed_columns";

--> statement-breakpoint
-- squawk-ignore ban-drop-table
drop table "metersync"."typed_views";
