-- The share of an amount that falls on some of its days: those after the first `before` of `total`, up to `through`.
-- Sums of whole days are rounded, not the days, and the last share is what is left: all shares add up to the amount
-- exactly, for any cut of the days.
create or replace function metersync.share(
  amount numeric,
  before integer,
  through integer,
  total integer,
  places integer
)
returns numeric
language sql immutable parallel safe
as $$
  select
    case
      when through >= total then amount
      else round(amount * through / total, places)
    end - case
      when before <= 0 then 0
      else round(amount * before / total, places)
    end
$$;
