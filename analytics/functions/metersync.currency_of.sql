-- Returns the code of a currency. Neither case nor blanks matter, and common signs are known. A
-- sign that several currencies share, such as $, stays as it is.
create or replace function metersync.currency_of (value text) returns text
language sql immutable parallel safe as $$
  select case upper(replace(value, ' ', ''))
    when '' then null
    when 'US$' then 'USD'
    when 'USD$' then 'USD'
    when '$US' then 'USD'
    when 'U.S.$' then 'USD'
    when 'CA$' then 'CAD'
    when 'CAD$' then 'CAD'
    when 'CDN$' then 'CAD'
    when 'C$' then 'CAD'
    when 'A$' then 'AUD'
    when 'AU$' then 'AUD'
    when 'MX$' then 'MXN'
    when '€' then 'EUR'
    when '£' then 'GBP'
    else upper(replace(value, ' ', ''))
  end
$$;
