-- Returns the share of an amount for some of its days: the days after the first `before` of
-- `total`, up to `through`. Sums of whole days are rounded instead of single days, and the last
-- share is the remainder, so that all shares add up to the amount exactly, however the days are
-- cut.
create or replace function metersync.share (
  amount numeric, before integer, through integer, total integer, places integer
) returns numeric
language sql immutable parallel safe as $$
  select case when through >= total then amount else round(amount * through / total, places) end
    - case when before <= 0 then 0 else round(amount * before / total, places) end
$$;
