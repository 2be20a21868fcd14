-- Each worker keeps its own limit of requests. Older workers send no requests without these tables,
-- so this migration names no floor: they have to be stopped first.
drop table "metersync"."service_gate";

--> statement-breakpoint
drop table "metersync"."service_workers";
