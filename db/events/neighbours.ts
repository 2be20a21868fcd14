import { type SQL, sql } from 'drizzle-orm';
import { array } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { prepared } from '../connection/prepared.ts';
import { eventKind } from '../queue/queue.ts';
import { anyOf, recordRead } from '../records/companies.ts';
import { tableOf } from '../resources.ts';
import { eventPayloads, journal } from '../schema/metersync.ts';
import { runs } from '../schema/reads.ts';
import {
  companies,
  connectionSites,
  documents,
  meters,
  sites,
  usageData,
} from '../schema/utility.ts';

type RecordKind = 'connections' | 'documents';

/** What records that were just read name and the warehouse does not have yet. */
interface UnknownNeighbours {
  /** Companies whose records the service showed, and which have no row, or were never read in a run. */
  readonly companies: readonly string[];
  /** The companies of those given records that were read. */
  readonly owners: readonly string[];
  /** Whether a record names a site without a row. */
  readonly sites: boolean;
  /** Whether usage of a document names a meter without a row, or contradicts the row of its meter. */
  readonly meters: boolean;
  /** The warehouse's clock. */
  readonly now: string;
}

/**
 * Reads which companies, sites and meters the given records name that have no rows yet, so that the listings
 * that contain them are read, too. `companyId` is the company for which the records were read.
 */
export async function unknownNeighbours(
  db: Executor,
  kind: RecordKind,
  companyId: string,
  recordIds: readonly string[],
): Promise<UnknownNeighbours> {
  const { rows } = await prepared(db, 'unknownNeighbours').execute<
    UnknownNeighbours & Record<string, unknown>
  >(sql`
    with read as materialized (
      select id, company_id
      from ${tableOf(kind)}
      where id = any(${array(recordIds, 'uuid')})
        and raw is not null
    ), company as materialized (
      select ${companyId}::uuid as id union select company_id from read
    )
    select
      clock_timestamp()::text as now,
      array(
        select id::text
        from company
        where case
            when not exists (
              select from ${companies} c
              where c.id = company.id
                and (c.raw is not null or c.deleted_at is null and ${anyOf(runs, sql`c.id`)})
            )
            then ${recordRead(sql`company.id`)}
          end
      ) as companies,
      array(select distinct company_id::text from read where company_id is not null) as owners,
      exists (
        select from ${sitesOf[kind]} named
        where site_id is not null and not ${hasSite(sql`site_id`)}
      ) as sites,
      ${kind === 'documents' ? namesUnknownMeter : sql`false`} as meters`);
  const [read] = rows;
  if (read === undefined) throw new Error('a select without a table has one row');
  return read;
}

/** The sites that the records in the step `read` name. */
const sitesOf: Readonly<Record<RecordKind, SQL>> = {
  connections: sql`(
          select site_id from ${connectionSites}
          where connection_id = any(array(select id from read))
        )`,
  documents: sql`(
          select site_id from ${documents} where id = any(array(select id from read))
        )`,
};

const hasSite = (id: SQL): SQL => sql`exists (
          select from ${sites} s
          where s.id = ${id} and (s.deleted_at is null or s.raw is not null)
          offset 0
        )`;

const namesUnknownMeter = sql`exists (
        select from read
          cross join lateral (
            select meter_id, raw
            from ${usageData}
            where document_id = read.id and deleted_at is null and meter_id is not null
            offset 0
          ) u
          left join ${meters} m on m.id = u.meter_id
        where m.id is null
          or m.deleted_at is not null
          or m.site_id::text <> metersync.id_of(u.raw -> 'site')
          or m.datasource_type <> u.raw ->> 'datasourceType'
      )`;

/** The sites that the payload of an event names, as a table `named (site)`. */
const namedIn = (kind: RecordKind): SQL =>
  kind === 'documents'
    ? sql`(select p.payload -> 'site' as site) named`
    : sql`(
        select relation -> 'site' as site
        from jsonb_array_elements(metersync.elements(p.payload -> 'sitesRelations')) relation
      ) named`;

/** Whether the row of a record names a site, by its columns as its last read left them. */
const namesSite: Readonly<Record<RecordKind, SQL>> = {
  connections: sql`exists (
        select from ${connectionSites} where connection_id = read.id and site_id = site.id
      )`,
  documents: sql`site.id = read.site_id`,
};

/**
 * Inserts sites that these records and waiting events about them name and that have no row: not every service
 * lists the sites of a company. An event counts if its record was read in the state that it names, or a newer
 * one. Existing rows stay, because records outrank events.
 */
export async function insertNamedSites(
  db: Executor,
  kind: RecordKind,
  recordIds: readonly string[],
): Promise<void> {
  await db.execute(sql`
    with event as materialized (
      select id, record_id, occurred_at
      from ${journal}
      where record_id = any(${array(recordIds, 'text')})
        and kind = ${eventKind[kind]}
        and outcome = 'pending'
    )
    insert into ${sites} as held (id, company_id, name)
    select distinct on (site.id) site.id, read.company_id, site.name
    from event
      join ${tableOf(kind)} read on read.id = event.record_id::uuid
      join ${eventPayloads} p on p.id = event.id
      cross join lateral ${namedIn(kind)}
      cross join lateral (
        select metersync.uuid_of(metersync.id_of(named.site)) as id, named.site ->> 'name' as name
      ) site
    where read.id = any(${array(recordIds, 'uuid')})
      and p.id = any(array(select id from event))
      and read.raw is not null
      and event.occurred_at <= read.raw_updated
      and ${namesSite[kind]}
      and not ${hasSite(sql`site.id`)}
    order by site.id, event.occurred_at desc nulls last, site.name
    on conflict (id) do update set absent_since = null, absent_by = null
    where held.deleted_at is not null and held.raw is null`);
}
