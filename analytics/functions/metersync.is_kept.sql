-- Whether somebody rejected or undid an earlier deletion of a record, or of the live document of
-- this usage, and no read found the document since. Such a record stays until a listing shows it.
create or replace function metersync.is_kept (
  of_resource text,
  of_record text,
  of_document uuid
) returns boolean
language plpgsql stable
set enable_seqscan = off as $$
begin
  if exists (
    select from metersync.deletes
    where resource = of_resource and record_id = of_record and state in ('rejected', 'undone')
  ) then
    return true;
  end if;
  return of_document is not null and exists (
    select
    from metersync.deletes note
      join utility.documents bill on bill.id = of_document
    where note.resource = 'documents'
      and note.record_id = of_document::text
      and note.state in ('rejected', 'undone')
      and bill.deleted_at is null
      and (bill.synced_at is null or bill.synced_at < note.absent_since)
  );
end $$;
