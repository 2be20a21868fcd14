import { type SQL, sql } from 'drizzle-orm';
import { array, columnNames } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { journal, staleRecords } from '../schema/metersync.ts';
import { companies, connections, documents, meters, sites, usageData } from '../schema/utility.ts';
import { firstOf } from './due.ts';
import { eventKind, keyOf } from './stale.ts';

/** Which listings of a company need to be read. */
export interface Unread {
  /** Whether the company lives. */
  readonly lives: boolean;
  /** Whether the company, or a live site of it, is known by name only. */
  readonly companies: boolean;
  /** Whether a meter is known by name only, or contradicts the usage of the given documents. */
  readonly meters: boolean;
  /** The warehouse's clock. */
  readonly now: string;
}

/**
 * Inserts the sites without a row that waiting events of just read records name, and reads which
 * listings of the company need to be read. Each record must have been read in the state that its
 * event names, or a newer one. Existing sites keep their values: the API's record outranks events.
 */
export async function readSurroundings(
  db: Executor,
  kind: 'connections' | 'documents',
  companyId: string,
  recordIds: readonly string[],
): Promise<Unread> {
  const documentIds = kind === 'documents' ? recordIds : [];
  const result = await db.execute<Unread & Record<string, unknown>>(sql`
    with company as materialized (
      select ${companies.id}, ${companies.raw}
      from ${companies}
      where ${companies.id} = ${companyId}::uuid
        and ${companies.deletedAt} is null
    ), named as (
      insert into ${sites} as held (${columnNames([sites.id, sites.companyId, sites.name])})
      select distinct on (identified.id)
        identified.id,
        e.company_id,
        site ->> 'name'
      ${sitesNamed(kind, recordIds)}
      order by identified.id, e.occurred_at desc nulls last, site
      on conflict (id) do update set
        deleted_at = null,
        deleted_reason = null
      where held.deleted_at is not null
        and held.raw is null
      returning id
    )
    select
      exists (select from company) as lives,
      exists (select from named) or ${companiesUnread(companyId)} as companies,
      ${metersUnread(companyId, documentIds)} as meters,
      clock_timestamp()::text as now`);
  return firstOf(result.rows);
}

/** Sites without a live row that waiting events of these records name, if their company lives. */
function sitesNamed(kind: 'connections' | 'documents', recordIds: readonly string[]): SQL {
  const record = kind === 'documents' ? documents : connections;
  return sql`
    from unnest(${array(recordIds, 'text')}) as asked (record_id)
      cross join lateral (
        select ${staleRecords.kind}, ${staleRecords.recordId}, ${staleRecords.since}
        from ${staleRecords}
        where ${staleRecords.key} = ${keyOf(eventKind[kind], sql`asked.record_id`)}
        offset 0
      ) waiting
      cross join lateral (
        select ${record.rawUpdated}
        from ${record}
        where ${record.id} = waiting.record_id::uuid
          and ${record.raw} is not null
        offset 0
      ) r
      cross join lateral (
        select ${journal.companyId}, ${journal.occurredAt}, ${journal.payload}
        from ${journal}
        where ${journal.recordId} = waiting.record_id
          and ${journal.kind} = waiting.kind
          and ${journal.recordedAt} >= waiting.since
          and ${journal.occurredAt} <= r.raw_updated
        offset 0
      ) e
      join company on company.id = e.company_id
      cross join lateral (${sitesOf[kind]}
      ) named
      cross join lateral (
        select metersync.uuid_of(metersync.id_of(site)) as id
      ) identified
    where identified.id is not null
      and not exists (
        select
        from ${sites} existing
        where existing.id = identified.id
          and (existing.deleted_at is null or existing.raw is not null)
        offset 0
      )`;
}

/** Sites that an event `e` names. */
const sitesOf: Readonly<Record<'connections' | 'documents', SQL>> = {
  connections: sql`
        select relation -> 'site' as site
        from jsonb_array_elements(metersync.elements(e.payload -> 'sitesRelations')) relation`,
  documents: sql`
        select e.payload -> 'site' as site`,
};

const companiesUnread = (companyId: string): SQL => sql`exists (
    select
    from company
    where raw is null
  ) or exists (
    select
    from ${sites}
    where ${sites.companyId} = ${companyId}::uuid
      and ${sites.raw} is null
      and ${sites.deletedAt} is null
  )`;

const metersUnread = (companyId: string, documentIds: readonly string[]): SQL => sql`exists (
    -- Looks up each meter once, however much usage it has.
    with recursive used as (
      select ${companyId}::uuid as company_id, '' as meter_id
      union all
      select next.company_id, next.meter_id
      from used
        cross join lateral (
          select u.company_id, u.meter_id
          from ${usageData} u
          where (u.company_id, u.meter_id) > (used.company_id, used.meter_id)
            and u.deleted_at is null
          order by u.company_id, u.meter_id
          limit 1
        ) next
      where used.company_id = ${companyId}::uuid
    )
    select
    from used
    where company_id = ${companyId}::uuid
      and meter_id <> ''
      and not exists (
        select
        from ${meters}
        where ${meters.id} = used.meter_id
        offset 0
      )
  ) or exists (
    select
    from unnest(${array(documentIds, 'uuid')}) as asked (id)
      cross join lateral (
        select ${usageData.meterId}, ${usageData.raw}
        from ${usageData}
        where ${usageData.documentId} = asked.id
          and ${usageData.deletedAt} is null
        offset 0
      ) u
      cross join lateral (
        select *
        from ${meters}
        where ${meters.id} = u.meter_id
        offset 0
      ) m
    where m.deleted_at is not null
      or m.site_id::text <> metersync.id_of(u.raw -> 'site')
      or m.datasource_type <> u.raw ->> 'datasourceType'
  )`;
