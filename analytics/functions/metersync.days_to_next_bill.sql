-- How many days after the last bill the next one is due: one and a half times the usual days, or
-- times 31 where none are usual yet.
create or replace function metersync.days_to_next_bill (usual_days numeric) returns integer language sql immutable parallel safe as $$
  select ceil(1.5 * coalesce(usual_days, 31))::integer
$$;
