-- What the warehouse knows about a live row that a listing lacks since a moment:
--   shown            a read or an event showed it since, so it is not absent
--   kept             somebody rejected or undid an earlier deletion of it, or of the document of
--                    this usage
--   held             it is usage of a document that waits for a decision
--   held, explained  the same, and something explains the absence
--   explained        its company is gone, or its document explains the absence
--   unexplained      none of these: it counts towards the cap on deletions
-- A document explains the absence of its usage if it is deleted, if its events are pending,
-- because the read of the document also reads its usage, or if it has a version that does not list
-- the usage and was first read after the usage was last known to be listed. States with the same
-- `updated` and the same usage are one version: their other fields may differ at every read.
-- Each look-up is by a key. Without the setting, a session that planned them while the tables were
-- empty would go on reading whole tables (test/db/cost).
create or replace function metersync.absence_of (
  of_resource text,
  of_record text,
  of_company uuid,
  of_document uuid,
  first_read timestamptz,
  last_read timestamptz,
  since timestamptz
) returns text
language plpgsql stable
set enable_seqscan = off as $$
declare
  bill utility.documents;
  is_held boolean;
  last_listed timestamptz;
  is_explained boolean;
begin
  if first_read >= since or last_read >= since then
    return 'shown';
  end if;
  if of_resource = 'companies' then
    if exists (
      select from metersync.journal where company_id = of_record::uuid and recorded_at >= since
    ) then
      return 'shown';
    end if;
  elsif exists (
    select from metersync.journal where record_id = of_record and recorded_at >= since
  ) then
    return 'shown';
  end if;
  if of_document is not null then
    select * into bill from utility.documents where id = of_document;
    if bill.usage_read_at >= since then
      return 'shown';
    end if;
  end if;

  if metersync.is_kept(of_resource, of_record, of_document) then
    return 'kept';
  end if;
  is_held := bill.id is not null and bill.deleted_at is null and exists (
    select from metersync.deletes
    where resource = 'documents'
      and record_id = bill.id::text
      and state = 'quarantined'
      and (bill.synced_at is null or bill.synced_at < absent_since)
  );

  is_explained := exists (
    select from utility.companies where id = of_company and deleted_at is not null
  );
  if not is_explained and bill.id is not null then
    is_explained := bill.deleted_at is not null or exists (
      select from metersync.journal
      where record_id = bill.id::text and kind = 'document' and outcome = 'pending'
    );
    if not is_explained then
      last_listed := greatest(last_read, bill.usage_read_at, (
        select started_at
        from metersync.runs
        where company_id = of_company
          and resource = 'usageData'
          and kind = 'full'
          and state = 'complete'
        order by finished_at desc
        limit 1
      ));
      is_explained := coalesce(bill.synced_at > last_listed, false)
        and not exists (
          select
          from jsonb_array_elements(metersync.elements(bill.raw -> 'usageData')) listed
          where metersync.canonical_id(listed ->> 'id') = of_record
        )
        and not exists (
          select
          from metersync.earlier_states
          where resource = 'documents'
            and id = bill.id
            and synced_at <= last_listed
            and raw_updated is not distinct from bill.raw_updated
            and raw -> 'usageData' is not distinct from bill.raw -> 'usageData'
        );
    end if;
  end if;
  return case
    when is_held and is_explained then 'held, explained'
    when is_held then 'held'
    when is_explained then 'explained'
    else 'unexplained'
  end;
end $$;
