import { sql } from 'drizzle-orm';
import { countWritten, items, newerRead, rawOf, setColumns, type UpsertPage } from './page.ts';

const columns = ['company_id', 'site_id', 'created', 'updated', 'raw_updated'] as const;

/**
 * Documents. Records name the site on each usage row rather than at the top (service-facts 2), so the first one
 * stands for the document; where neither tells it, what an event told stays.
 */
export const upsertDocuments: UpsertPage = (tx, page) =>
  countWritten(
    tx,
    sql`with ${items(page)}
    insert into utility.documents as d (id, ${sql.raw(columns.join(', '))}, raw, api_version, synced_at)
    select distinct on (id) (r ->> 'id')::uuid as id, coalesce(metersync.id_of(r -> 'company')::uuid, ${page.companyId}::uuid),
      coalesce(metersync.id_of(r -> 'site'), metersync.id_of(r #> '{usageData,0,site}'), known.site_id::text)::uuid,
      metersync.read_time(r ->> 'created'), metersync.read_time(r ->> 'updated'), metersync.read_time(r ->> 'updated'),
      ${rawOf}, ${page.apiVersion}, ${page.readAt}::timestamptz
    from item left join utility.documents known on known.id = (r ->> 'id')::uuid
    order by id, metersync.read_time(r ->> 'updated') desc nulls last, place desc
    on conflict (id) do update set ${setColumns(columns)}
    where ${newerRead('d', columns)}
    returning (xmax = 0) as inserted`,
  );
