-- Open issues with the names that people know. The record of each issue is looked up by its key.
create or replace view ops.open_issues as
with issues as (
  select
    *,
    case
      when entity_type in ('document', 'usage', 'connection', 'site')
        then metersync.uuid_of(entity_id)
    end as record_id
  from ops.data_issues
  where closed_at is null
), placed as (
  select
    i.*, m.meter_id, m.identifier,
    case i.entity_type
      when 'site' then i.record_id
      else coalesce(m.site_id, b.site_id)
    end as site_id,
    coalesce(b.account_number, a.account_number) as account,
    coalesce(b.provider, k.provider) as provider,
    b.bill_id, b.invoice_id
  from issues i
    left join lateral (
      select u.document_id, u.meter_id
      from utility.usage_data u
      where i.entity_type = 'usage'
        and u.id = i.record_id
      offset 0
    ) u on true
    left join lateral (
      select
        m.id as meter_id,
        m.site_id, m.account_id,
        coalesce(metersync.meter_number(m.raw), m.id) as identifier
      from utility.meters m
      where m.id = case i.entity_type when 'meter' then i.entity_id else u.meter_id end
      offset 0
    ) m on true
    left join lateral (
      select
        d.id as bill_id,
        d.site_id, r.account_number, r.provider, r.invoice_id
      from utility.documents d
        cross join analytics.read_bill(d.raw) r
      where d.id = case i.entity_type when 'document' then i.record_id else u.document_id end
      offset 0
    ) b on true
    left join lateral (
      select k.datasource as provider
      from utility.connections k
      where i.entity_type = 'connection'
        and k.id = i.record_id
      offset 0
    ) k on true
    cross join lateral (
      select min(nullif(account ->> 'accountNumber', '')) as account_number
      from utility.connections k
        cross join jsonb_array_elements(
          metersync.elements(k.raw -> 'accounts')
        ) as accounts (account)
      where b.account_number is null
        and k.company_id = i.company_id
        and k.deleted_at is null
        and metersync.elements(account -> 'meters') @> to_jsonb(m.meter_id)
    ) a
)
select
  p.id as issue_id,
  p.company_id,
  (select c.name from utility.companies c where c.id = p.company_id) as company,
  p.site_id,
  (select s.name from utility.sites s where s.id = p.site_id) as site,
  p.meter_id,
  p.identifier as meter,
  p.account, p.provider, p.bill_id, p.invoice_id, p.severity, p.check_name,
  ops.issue_sentence(p.check_name, p.subject, p.evidence) as sentence,
  p.opened_at as since,
  p.acknowledged_at, p.acknowledged_note,
  (p.evidence ->> 'may_cost')::numeric as may_cost,
  case when p.evidence ? 'may_cost' then p.evidence ->> 'currency' end as currency
from placed p;
comment on view ops.open_issues is 'One row for each open issue, with a sentence and names.';
comment on column ops.open_issues.issue_id is
  'id of data_issues, for metersync checks acknowledge.';
comment on column ops.open_issues.meter is 'Number of the meter, or else its id.';
comment on column ops.open_issues.account is 'Account number of the bill, or else of the meter.';
comment on column ops.open_issues.since is 'When it was first found.';
comment on column ops.open_issues.may_cost is
  'The meter''s part of what the missing bills of a gap may cost. Amounts in one currency can be '
  'added.';
comment on column ops.open_issues.currency is 'Currency of may_cost.';
