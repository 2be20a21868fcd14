-- The number of days after the last bill at which the next bill is due: one and a half times the
-- usual number of days, or one and a half times 31 if no number is usual yet.
create or replace function metersync.days_to_next_bill (usual_days numeric) returns integer
language sql immutable parallel safe as $$
  select ceil(1.5 * coalesce(usual_days, 31))::integer
$$;
