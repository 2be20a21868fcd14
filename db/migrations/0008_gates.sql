-- Which requests are not sent for now. Code of 0.2 reads the table parked, and has to be stopped first: see 0007.
-- squawk-ignore-file ban-drop-table
create table "metersync"."gates" (
  "scope" text primary key not null,
  "code" text not null,
  "message" text not null,
  "since" timestamp(6) with time zone default clock_timestamp() not null,
  "attempts" integer not null,
  "next_probe_at" timestamp(6) with time zone not null
);

--> statement-breakpoint
insert into metersync.gates (scope, code, message, since, attempts, next_probe_at)
select 'service', code, message, since, attempts, next_attempt_at
from metersync.parked
order by next_attempt_at desc
limit 1;

--> statement-breakpoint
comment on table metersync.gates is
  'Which requests fail for now: no other is sent until one that is sent as a probe succeeds.';

--> statement-breakpoint
comment on column metersync.gates.scope is
  'What fails: service, or the queue of an owner as in metersync.journal.';

--> statement-breakpoint
comment on column metersync.gates.code is 'The failure, as docs/reference/failures.md lists it.';

--> statement-breakpoint
comment on column metersync.gates.message is 'The failure in words.';

--> statement-breakpoint
comment on column metersync.gates.since is 'When this failure was first met.';

--> statement-breakpoint
comment on column metersync.gates.attempts is 'Unsuccessful attempts. The wait after each is longer.';

--> statement-breakpoint
comment on column metersync.gates.next_probe_at is 'When the sweep sends the next request as a probe.';

--> statement-breakpoint
drop table "metersync"."parked";

--> statement-breakpoint
-- Since when a read certainly shows its state: since the record was updated, but not earlier than the lag of
-- the API before the read, and not later than its answer, which comes within minutes. A request that was
-- retried shows what happened after it began. Of two reads, the later of these wins.
create or replace function metersync.shows_since(updated timestamptz, began timestamptz)
returns timestamptz
language sql stable parallel safe
begin atomic
  select greatest(
      began - metersync.api_lag(),
      case when updated is not null then least(updated, began + interval '5 minutes') end
    );
end;
