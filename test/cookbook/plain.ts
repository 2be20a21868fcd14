/** The beginning of every plain query: the bills that count, their usage on whole days and by day. */
const common = `
  with recursive counts as (
    select d.*, d.raw ->> 'chargesUnits' as currency, (d.raw ->> 'currentCharges')::numeric as cost,
      d.raw ->> 'invoiceId' as invoice_id, (
        select min(i ->> 'value')
        from jsonb_array_elements(d.raw -> 'usageData') u, jsonb_array_elements(u -> 'identifiers') i
        where i ->> 'name' = 'ACCOUNT') as account
    from utility.documents d
    where d.deleted_at is null and d.raw is not null and not exists (
      select from utility.documents n where n.id = d.revised_document_id and n.deleted_at is null)
  ), records as (
    select u.document_id, u.meter_id, d.created, d.company_id, m.site_id, m.datasource_type as commodity, u.start_date as first_day,
      u.end_date, min(u.start_date) over (
        partition by u.meter_id order by u.start_date groups between 1 following and 1 following) as next_start,
      u.usage, u.usage_units, u.exclusion, u.billed_demand, u.is_estimated, m.raw ->> 'netMeteringType' as net_metering,
      case when u.usage >= 0 and (coalesce(m.raw ->> 'netMeteringType', '') = 'EXPORT') <> coalesce(u.exclusion, false) then -1 else 1 end
        as sign,
      case u.usage_units when 'thm (US)' then 1054804 / 36000.0 when 'kgal (US)' then 3.785411784 else 1 end as factor,
      case u.usage_units when 'kgal (US)' then 'cubic m' else 'kWh' end as units
    from utility.usage_data u join counts d on d.id = u.document_id join utility.meters m on m.id = u.meter_id
    where u.deleted_at is null
  ), billed as (
    select *, case when end_date > first_day and end_date = next_start then end_date else end_date + 1 end as until from records
  ), days as (
    select b.*, day::date, b.sign * b.usage * b.factor / (b.until - b.first_day) as of_day,
      dense_rank() over (partition by b.meter_id, day order by b.created desc, b.document_id desc) as age
    from billed b cross join lateral generate_series(b.first_day, b.until - 1, interval '1 day') as day
  ), months as (
    select meter_id, commodity, units, date_trunc('month', day)::date as month, sum(of_day) filter (where age = 1) as usage,
      count(distinct day) = (date_trunc('month', min(day)) + interval '1 month')::date - date_trunc('month', min(day))::date
        and max(age) = 1 as is_whole
    from days group by 1, 2, 3, 4
  ), lines as (
    select d.currency, line ->> 'chargeType' as charge_type, line ->> 'electricityChargeType' as supply_or_delivery,
      coalesce((line ->> 'electricityIsDemand')::boolean, false) as is_demand, (line ->> 'totalCharge')::numeric as amount,
      (line ->> 'quantity')::numeric as quantity, line ->> 'quantityUnits' as quantity_units
    from counts d cross join lateral jsonb_array_elements(d.raw -> 'lineItems') as line
    where coalesce(line ->> 'billingPeriod', 'CURRENT') in ('', 'CURRENT')
  ), numbers as (
    select m.id as meter_id, m.raw -> 'identifiers' -> 0 ->> 'value' as meter_number, c.name as company, s.name as site
    from utility.meters m join utility.companies c on c.id = m.company_id join utility.sites s on s.id = m.site_id
  )`;

/** The cookbook's answers as anybody would write them: some of a recipe's columns, in its order of rows. */
export const plain: Readonly<Record<string, string>> = {
  'What does each site cost, month by month?': `${common},
    spans as (
      select d.id, d.company_id, d.site_id, d.currency, d.cost, min(b.first_day) as first_day, max(b.until) as until
      from counts d join billed b on b.document_id = d.id group by 1, 2, 3, 4, 5
    )
    select c.name as company, s.name as site, date_trunc('month', day)::date as month, p.currency,
      sum(p.cost / (p.until - p.first_day)) as cost
    from spans p cross join lateral generate_series(p.first_day, p.until - 1, interval '1 day') as day
      join utility.companies c on c.id = p.company_id join utility.sites s on s.id = p.site_id
    where day >= '2026-03-01' and day < '2026-06-01'
    group by c.name, s.id, s.name, 3, 4 order by c.name, s.name, s.id, 3, 4`,

  'How much electricity does each meter use, month by month?': `${common}
    select n.company, n.site, n.meter_number, u.month, u.usage as kwh
    from months u join numbers n using (meter_id)
    where u.commodity = 'ELECTRICITY' and u.month >= '2026-03-01' and u.month < '2026-06-01'
    order by n.company, n.site, n.meter_number, u.month`,

  'Which bills have an unusual cost per kWh?': `${common}
    select min(n.company) as company, min(n.site) as site, d.invoice_id, d.cost, d.currency,
      sum(b.sign * b.usage) as usage, round(d.cost / sum(b.sign * b.usage), 4) as cost_per_kwh
    from counts d join billed b on b.document_id = d.id join numbers n using (meter_id)
    group by d.id, d.invoice_id, d.cost, d.currency
    having min(b.commodity) = 'ELECTRICITY' and max(b.commodity) = 'ELECTRICITY' and sum(b.sign * b.usage) > 0
    order by cost_per_kwh desc, d.invoice_id limit 10`,

  'Which bills are missing?': `${common},
    spans as (
      select meter_id, range_agg(daterange(first_day, until)) as covered from billed group by meter_id
    ), of_bills as (
      select d.id, b.meter_id, d.cost, d.currency, max(b.until - b.first_day) as days,
        count(*) over (partition by d.id) as meters
      from counts d join billed b on b.document_id = d.id group by 1, 2, 3, 4
    ), daily as (
      select meter_id, case when count(distinct currency) = 1 then sum(cost / meters) / sum(days) end as cost
      from of_bills group by 1
    )
    select n.company, n.site, n.meter_number as meter, round((upper(gap) - lower(gap)) * daily.cost, 2) as may_cost
    from spans cross join lateral unnest(datemultirange(range_merge(covered)) - covered) as gap
      join numbers n using (meter_id) join daily using (meter_id)
    where upper(gap) - lower(gap) >= 3 order by 4 desc nulls last, 3, lower(gap) limit 20`,

  'Which bills were restated?': `${common}
    select d.raw ->> 'invoiceId' as invoice_id, d.raw ->> 'chargesUnits' as currency,
      (h.raw ->> 'currentCharges')::numeric as cost_before, coalesce(now.cost, 0) as cost_after,
      coalesce(now.cost, 0) - (h.raw ->> 'currentCharges')::numeric as cost_change
    from history.documents h join utility.documents d using (id) left join counts now using (id)
    order by h.valid_to desc, 1, 2`,

  'Where were the demand peaks?': `${common}
    select n.company, n.site, n.meter_number, max(b.billed_demand) as peak
    from billed b join numbers n using (meter_id)
    where b.billed_demand is not null group by b.meter_id, 1, 2, 3 order by peak desc, n.meter_number limit 10`,

  'How does the load run through a Tuesday?': `
    with readings as (
      select i.meter_id, extract(isodow from i.start_at at time zone 'America/New_York') as weekday,
        extract(hour from i.start_at at time zone 'America/New_York') as hour, i.usage * 3600 / i.granularity_seconds as kw
      from utility.intervals i join utility.meters m on m.id = i.meter_id
      where i.usage_units = 'kWh' and coalesce(m.raw ->> 'netMeteringType', '') not in ('EXPORT', 'GENERATION')
    )
    select hour, round(sum(kw), 3) as kw, count(*) as meters
    from (select meter_id, hour, avg(kw) as kw from readings where weekday = 2 group by 1, 2) means
    group by 1 order by 1`,

  'What changed against the year before?': `${common}
    select now.commodity, now.units, count(*) as meters, sum(before.usage) as april_2025, sum(now.usage) as april_2026,
      round(100 * (sum(now.usage) - sum(before.usage)) / sum(before.usage), 1) as percent
    from months now join months before using (meter_id)
    where now.month = '2026-04-01' and before.month = '2025-04-01' and now.is_whole and before.is_whole
    group by 1, 2 order by 1, 2`,

  'Who has to sign in again?': `
    select c.name as company, k.raw -> 'datasource' ->> 'name' as provider, k.status
    from utility.connections k join utility.companies c on c.id = k.company_id
    where k.deleted_at is null and k.status in ('MFA_TOKEN_EXPIRED', 'PASSWORD_INCORRECT', 'INCORRECT_PASSWORD',
      'NEW_PASSWORD_NEEDED', 'ADDITIONAL_CREDENTIALS_NEEDED', 'COMPANY_INACTIVE', 'NO_ACCOUNTS_FOUND')
    order by c.name, k.datasource, k.id`,

  'How fresh is the data?': `${common}
    select c.name as company, k.status, (
      select max(b.until) - 1 from billed b
      where jsonb_path_exists(k.raw, '$.accounts[*].meters[*] ? (@ == $meter)', jsonb_build_object('meter', b.meter_id))
    ) as utility_published_until
    from utility.connections k join utility.companies c on c.id = k.company_id
    where k.deleted_at is null order by c.name, k.datasource, k.id`,

  'What were the bills as of a date?': `
    with known as (
      select d.id, coalesce(h.raw, d.raw) as raw
      from utility.documents d left join lateral (
        select raw from history.documents h where h.id = d.id order by valid_from limit 1) h on true
      where d.first_synced_at <= (select min(finished_at) from ops.runs where kind = 'full' and of_all and resource is null)
    )
    select raw ->> 'chargesUnits' as currency, count(*) as bills, sum((raw ->> 'currentCharges')::numeric) as cost
    from known where not exists (select from known n where n.id::text = known.raw ->> 'revisedDocumentId')
    group by 1 order by 1`,

  'What was billed by each utility?': `${common}
    select raw ->> 'utilityCompany' as provider, currency, count(*) as bills, sum(cost) as cost
    from counts group by 1, 2 order by 2, 4 desc, 1`,

  'What is on the lines of the bills, and what of it is tax?': `${common}
    select charge_type, currency, count(*) as lines, sum(amount) as amount from lines group by 1, 2 order by 2, 1`,

  'Do bills agree with readings?': `${common}
    select n.meter_number, b.units,
      b.usage * b.factor * case when b.exclusion and b.usage > 0 then -1 else 1 end as billed_usage,
      sum(i.usage * case i.usage_units when 'gal (US)' then 0.003785411784 else b.factor end) as interval_usage
    from billed b join numbers n using (meter_id) join utility.intervals i on i.meter_id = b.meter_id and i.usage_units <> 'KW'
      and (i.start_at at time zone 'America/New_York')::date >= b.first_day
      and (i.start_at at time zone 'America/New_York')::date < b.until
    group by n.meter_number, b.document_id, b.first_day, b.until, b.units, b.usage, b.factor, b.exclusion
    order by 1, b.first_day`,

  'What is due in July?': `${common}
    select currency, count(*) as bills, sum((raw ->> 'totalCharges')::numeric) as due
    from counts where raw ->> 'dueDate' like '2026-07-%' group by 1 order by 1`,

  'What does a kWh cost for supply and for delivery?': `${common}
    select currency, supply_or_delivery, round(sum(amount) / sum(quantity), 5) as per_kwh
    from lines where supply_or_delivery is not null and not is_demand and quantity_units = 'kWh' group by 1, 2 order by 1, 2`,

  'What is paid for demand?': `${common}
    select currency, count(*) as lines, sum(amount) as cost from lines where is_demand group by 1 order by 1`,

  'How much is used in each month?': `${common}
    select month, commodity, units, round(sum(usage), 1) as usage from months
    where month >= '2026-03-01' and month < '2026-06-01' group by 1, 2, 3 order by 2, 1`,

  'How much water is that in cubic metres?': `${common}
    select usage_units, sum(usage) as usage, units as standard_units, round(sum(usage * factor), 3) as standard_usage
    from billed where commodity = 'WATER' group by 1, 3`,

  'What did net-metered sites take from the grid and feed back?': `${common}
    select n.site, sum(b.sign * b.usage) filter (where b.net_metering = 'IMPORT') as taken,
      -sum(b.sign * b.usage) filter (where b.net_metering = 'EXPORT') as given, sum(b.sign * b.usage) as net
    from billed b join numbers n using (meter_id)
    where b.net_metering is not null group by b.site_id, n.site order by net desc limit 5`,

  'How much usage is excluded because somebody else pays for it?': `${common}
    select usage_units as units, count(*) as records, sum(usage) as usage
    from billed where exclusion group by 1 order by 1`,

  'How much is estimated?': `${common}
    select commodity, count(*) filter (where is_estimated) as estimated, count(*) as records,
      round(100.0 * count(*) filter (where is_estimated) / count(*), 1) as percent
    from billed group by 1 order by 1`,

  'What does the electricity emit?': `${common}
    select month, '2026' as version, round(sum(usage) * 0.35, 0) as kg_co2e from months
    where commodity = 'ELECTRICITY' and month >= '2026-03-01' and month < '2026-06-01' group by 1 order by 1`,

  'How many bills count, and why do others not?': `
    select case
        when d.deleted_at is not null then 'deleted'
        when exists (select from utility.documents n where n.id = d.revised_document_id and n.deleted_at is null)
          then 'superseded'
        else 'counts'
      end as reason, count(*) as bills
    from utility.documents d group by 1 order by 2 desc`,

  'Which bills were superseded, and what did that change?': `${common},
    chain (old, next) as (
      select id, revised_document_id from utility.documents where deleted_at is null
      union select old, revised_document_id from chain join utility.documents d on d.id = next
    )
    select old.raw ->> 'invoiceId' as invoice_id, new.invoice_id as superseded_by, new.currency,
      new.cost - (old.raw ->> 'currentCharges')::numeric as cost_change
    from chain join utility.documents old on old.id = chain.old join counts new on new.id = chain.next
    order by 1 limit 5`,

  'Which months are not billed completely?': `${common},
    spans as (
      select meter_id, date_trunc('month', min(first_day)) as first, date_trunc('month', max(until) - 1) as last
      from billed group by 1
    ), calendar as (
      select s.meter_id, month::date, day::date
      from spans s cross join generate_series(timestamp '2026-01-01', '2026-04-01', '1 month') as month
        cross join lateral generate_series(month, month + interval '1 month' - interval '1 day', '1 day') as day
      where month between s.first and s.last
    ), bills_of_days as (
      select c.meter_id, c.month, c.day, count(distinct d.document_id) as bills
      from calendar c left join days d on d.meter_id = c.meter_id and d.day = c.day group by 1, 2, 3
    ), of_meters as (
      select meter_id, month, count(*) filter (where bills = 0) as missing, count(*) filter (where bills > 1) as doubly
      from bills_of_days group by 1, 2
    )
    select month, count(*) as meters, count(*) filter (where missing + doubly = 0) as complete,
      sum(missing) as days_missing, sum(doubly) as days_overlapped
    from of_meters group by 1 order by 1`,

  'Which bills came twice?': `${common},
    described as (
      select d.*, (
          select string_agg(concat_ws(' ', meter_id, first_day, until, usage), ',' order by meter_id, first_day, until, usage)
          from billed where document_id = d.id
        ) as said
      from counts d
    ), firsts as (
      select *, first_value(id) over (partition by company_id, currency, cost, said order by created, id) as by_amounts,
        first_value(id) over (
          partition by company_id, account, raw ->> 'utilityCompany', raw ->> 'billDate' order by created, id
        ) as by_account
      from described
    )
    select f.invoice_id, o.invoice_id as same_as, f.currency, f.cost
    from firsts f join counts o on o.id = case when f.by_amounts <> f.id then f.by_amounts else f.by_account end
    where o.id <> f.id order by 1 limit 5`,

  'Which accounts were billed in more than one currency?': `${common}
    select account as account_number, string_agg(distinct currency, ', ' order by currency) as currencies,
      count(*) as bills
    from counts group by 1 having count(distinct currency) > 1 order by 1 limit 5`,

  "When was each company's peak?": `
    with changes as (
      select m.company_id, t.at, sum(t.kw) as kw
      from utility.intervals i join utility.meters m on m.id = i.meter_id
        cross join lateral (values
          (i.start_at, i.usage * 3600 / i.granularity_seconds),
          (i.start_at + i.granularity_seconds * interval '1 second', -i.usage * 3600 / i.granularity_seconds)) t (at, kw)
      where i.usage_units = 'kWh' and m.datasource_type = 'ELECTRICITY'
        and coalesce(m.raw ->> 'netMeteringType', '') not in ('EXPORT', 'GENERATION')
      group by 1, 2
    ), loads as (
      select company_id, at at time zone 'America/New_York' as local, sum(kw) over (partition by company_id order by at) as kw
      from changes
    )
    select distinct on (l.company_id) c.name as company, local::date as local_date, to_char(local, 'HH24:MI') as at, round(kw, 3) as kw
    from loads l join utility.companies c on c.id = l.company_id order by l.company_id, l.kw desc, local`,

  'Are the readings complete?': `
    with days as (
      select granularity_seconds, usage_units as units, meter_id, (start_at at time zone 'America/New_York')::date as day,
        count(*) as readings, 86400 / granularity_seconds as expected
      from utility.intervals group by 1, 2, 3, 4
    )
    select granularity_seconds, units, count(*) as days, count(*) filter (where readings = expected) as whole_days,
      sum(readings) as readings, sum(expected) as expected
    from days group by 1, 2 order by 1, 2`,
};
