-- Which meters a connection collects for: the meters of its accounts.
create or replace view analytics.connection_meters as
select distinct k.company_id, k.id as connection_id, a.account ->> 'id' as account_id,
  nullif(a.account ->> 'accountNumber', '') as account_number, m.meter_id, t.site_id, t.datasource_type,
  t.datasource_type as commodity
from utility.connections k
  cross join lateral jsonb_array_elements(metersync.elements(k.raw -> 'accounts')) as a (account)
  cross join lateral jsonb_array_elements_text(metersync.elements(a.account -> 'meters')) as m (meter_id)
  left join utility.meters t on t.id = m.meter_id
where k.deleted_at is null;
comment on view analytics.connection_meters is 'One row for each meter of each account of a connection.';
select metersync.comment_columns('analytics.connection_meters', '{
  "account_id": "Account at the provider.",
  "account_number": "Its number."
}');

-- What a status says of a connection.
create or replace function analytics.status_class(status text) returns text
language sql immutable parallel safe as $$
  select case
    when status = 'CONNECTED' then 'healthy'
    when status in ('PENDING', 'UNDER_INVESTIGATION') then 'waiting'
    when status in (
      'MFA_TOKEN_EXPIRED', 'PASSWORD_INCORRECT', 'INCORRECT_PASSWORD', 'NEW_PASSWORD_NEEDED',
      'ADDITIONAL_CREDENTIALS_NEEDED'
    ) then 'needs_customer'
    when status = 'COMPANY_INACTIVE' then 'inactive'
    when status in ('WEBSITE_DOWN', 'URL_INACCESSIBLE', 'NO_ACCOUNTS_FOUND', 'OTHER_ERROR')
      then 'provider_problem'
    else 'unknown'
  end
$$;
comment on function analytics.status_class is 'healthy, waiting, needs_customer, provider_problem, inactive; unknown for a status that is none of those documented.';

create or replace function analytics.what_to_do(status text) returns text
language sql immutable parallel safe as $$
  select case status
    when 'MFA_TOKEN_EXPIRED' then
      'upload the documents, or disable multi-factor authentication on the provider''s portal'
    when 'PASSWORD_INCORRECT' then 'update the password of the connection'
    when 'INCORRECT_PASSWORD' then 'update the password of the connection'
    when 'NEW_PASSWORD_NEEDED' then
      'set a new password on the provider''s portal, then update it on the connection'
    when 'ADDITIONAL_CREDENTIALS_NEEDED' then 'add the credentials that the provider asks for'
    when 'COMPANY_INACTIVE' then 'have the company activated again'
    when 'NO_ACCOUNTS_FOUND' then 'look whether the login has accounts on the provider''s portal'
    else 'nothing yet: the service tries again'
  end
$$;
comment on function analytics.what_to_do is 'What a person has to do about a connection of a status.';

-- Three clocks: what the utility published, when the service collected it, when it was applied here.
create or replace view analytics.freshness as
select company_id, connection_id, provider, status, status_class, utility_published_until, service_collected_at, applied_at,
  pending_events, oldest_pending_at, usual_days_between_bills, next_bill_expected_on,
  next_bill_expected_on < current_date as is_late,
  case
    when pending_events > 0 and oldest_pending_at < now() - interval '1 hour' then 'metersync'
    when not coalesce(next_bill_expected_on < current_date, false) then null
    when status_class = 'needs_customer' then 'customer'
    when status_class = 'inactive' then 'inactive'
    when status_class = 'provider_problem' then 'provider'
    when status_class = 'waiting' then 'service'
    else 'utility'
  end as cause_of_lateness
from (
  select k.company_id, k.id as connection_id, k.datasource as provider, k.status, analytics.status_class(k.status) as status_class,
    b.until as utility_published_until, b.collected as service_collected_at,
    greatest(b.applied, k.synced_at) as applied_at, coalesce(e.pending, 0)::integer as pending_events,
    e.oldest as oldest_pending_at, b.cadence as usual_days_between_bills,
    b.until + ceil(1.5 * coalesce(b.cadence, 31))::integer as next_bill_expected_on
  from utility.connections k
    left join (
      select company_id, connection_id, max(last_day) as until, max(collected) as collected, max(applied) as applied,
        round(percentile_cont(0.5) within group (order by days)::numeric, 1) as cadence
      from (
        select c.company_id, c.connection_id, upper(u.period) - 1 as last_day, u.created as collected, r.synced_at as applied,
          lower(u.period) - lag(lower(u.period)) over (
            partition by c.company_id, c.connection_id, c.meter_id order by lower(u.period)) as days
        from analytics.connection_meters c
          join analytics.usage u on u.company_id = c.company_id and u.meter_id = c.meter_id
          join utility.usage_data r on r.id = u.usage_id
      ) billed
      group by company_id, connection_id
    ) b on b.company_id = k.company_id and b.connection_id = k.id
    left join (
      select owner, sum(events) as pending, min(since) as oldest
      from metersync.stale_records
      where kind in ('connection', 'document')
      group by owner
    ) e on e.owner = k.company_id::text
  where k.deleted_at is null
) told;
comment on view analytics.freshness is 'One row for each connection: how far its bills reach, when the service collected them, when they came here, and who is late.';
select metersync.comment_columns('analytics.freshness', '{
  "provider": "Utility.",
  "status": "Status, as the service names it.",
  "status_class": "healthy, waiting, needs_customer, provider_problem, inactive; unknown for a status that is none of those documented.",
  "utility_published_until": "Last day that a bill of the connection is for.",
  "service_collected_at": "When the service made the newest of their records.",
  "applied_at": "When the newest read of it began.",
  "pending_events": "Events of the company whose records wait to be read.",
  "oldest_pending_at": "Since when the first of them waits.",
  "usual_days_between_bills": "Median days from one bill of a meter to the next.",
  "next_bill_expected_on": "One and a half times that after the last bill; 31 days where there is one bill alone.",
  "is_late": "Whether that day is past; NULL without any bill.",
  "cause_of_lateness": "metersync (events wait for more than an hour), customer, provider, service, inactive, or utility when all else is well; NULL when nothing is late."
}');

create or replace view analytics.connections_needing_attention as
select f.company_id, c.name as company, f.connection_id, f.provider, f.status, f.status_class,
  greatest(s.since, metersync.time_of(k.raw ->> 'statusFirstSeenTime')) as since, analytics.what_to_do(f.status) as what_to_do,
  f.status_class in ('needs_customer', 'inactive') or f.status = 'NO_ACCOUNTS_FOUND' as customer_must_act,
  nullif(k.raw ->> 'statusErrorDetail', '') as detail, k.url, k.raw ->> 'workflowOwnerEmail' as owner,
  f.utility_published_until as data_until, f.is_late,
  array(select distinct m.site_id from analytics.connection_meters m
    where m.company_id = f.company_id and m.connection_id = f.connection_id and m.site_id is not null) as site_ids
from analytics.freshness f
  join utility.connections k on k.id = f.connection_id
  left join utility.companies c on c.id = f.company_id
  left join lateral (
    select max(h.at) as since from utility.connection_status_changes h
    where h.connection_id = k.id and h.status = k.status) s on true
where f.status_class not in ('healthy') and f.status <> 'PENDING';
comment on view analytics.connections_needing_attention is 'Connections that collect nothing: what is wrong, since when, what a person has to do, and what data is late for it.';
select metersync.comment_columns('analytics.connections_needing_attention', '{
  "company": "Name of the company.",
  "provider": "Utility.",
  "status": "Status, as the service names it.",
  "status_class": "As in freshness.",
  "since": "When the status began: as an event told or the service says, whichever is newer, as a status can come back without an event.",
  "what_to_do": "What a person has to do.",
  "customer_must_act": "Whether it stays so until somebody does.",
  "detail": "The service''s own words.",
  "url": "Address of the provider''s portal.",
  "owner": "Who set the connection up.",
  "data_until": "Last day that a bill of the connection is for.",
  "is_late": "Whether the next bill should be here.",
  "site_ids": "Sites that it collects for."
}');
