-- An endpoint has no delivery older than itself: whoever looks for its newest ones need not look further back.
create function sandbox.newest_delivery() returns bigint language sql stable
  return (select coalesce(max(id), 0) from sandbox.deliveries);
alter table sandbox.endpoints add column deliveries_after bigint not null default 0;
alter table sandbox.endpoints alter column deliveries_after set default sandbox.newest_delivery();
-- Few, and looked for among all.
create index events_example on sandbox.events (organization_id, seq) where example;
