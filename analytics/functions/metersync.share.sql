-- Returns the share of an amount for some of its days.
-- They are those after the first `before` of `total`, up to `through`.
-- Sums of whole days are rounded, not single days, and the last share is the remainder.
-- So all shares add up to the amount exactly, for any cut of the days.
create or replace function metersync.share (amount numeric, before integer, through integer, total integer, places integer) returns numeric language sql immutable parallel safe as $$
  select
    case
      when through >= total then amount
      else round(amount * through / total, places)
    end - case
      when before <= 0 then 0
      else round(amount * before / total, places)
    end
$$;
