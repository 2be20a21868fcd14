import { type SQL, sql } from 'drizzle-orm';
import { array } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { prepared } from '../connection/prepared.ts';
import { eventKind, payloadOf } from '../queue/queue.ts';
import { anyOf, recordRead } from '../records/companies.ts';
import { tableOf } from '../resources.ts';
import { journal } from '../schema/metersync.ts';
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
export interface UnknownNeighbours {
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
 * that contain them are read, too. `companyId` is the company for which the records were read. Each read of
 * records that events named runs it. Measured: 15 blocks for a document with three rows of usage.
 */
export async function unknownNeighbours(
  db: Executor,
  kind: RecordKind,
  companyId: string,
  recordIds: readonly string[],
): Promise<UnknownNeighbours> {
  const ids = array(recordIds, 'uuid');
  const { rows } = await prepared(db, 'unknownNeighbours').execute<
    UnknownNeighbours & Record<string, unknown>
  >(sql`
    with read as materialized (
      select r.id, r.company_id
      from unnest(${ids}) as asked (id)
        cross join lateral (
          select id, company_id
          from ${tableOf(kind)}
          where id = asked.id
            and raw is not null
          offset 0
        ) r
    )
    select
      clock_timestamp()::text as now,
      array(
        select named.id::text
        from (
            select ${companyId}::uuid as id
            union
            select company_id
            from read
          ) named
        where case
            when not exists (
              select
              from ${companies}
              where id = named.id
                and (raw is not null or deleted_at is null and ${anyOf(runs, sql`named.id`)})
              offset 0
            )
            then ${recordRead(sql`named.id`)}
          end
      ) as companies,
      array(select distinct company_id::text from read where company_id is not null) as owners,
      exists (${namesUnknownSite[kind]}) as sites,
      ${kind === 'documents' ? namesUnknownMeter : sql`false`} as meters`);
  const [read] = rows;
  if (read === undefined) throw new Error('a select without a table has one row');
  return read;
}

const hasSite = (id: SQL): SQL => sql`exists (
          select
          from ${sites}
          where id = ${id}
            and (deleted_at is null or raw is not null)
          offset 0
        )`;

const namesUnknownSite: Readonly<Record<RecordKind, SQL>> = {
  connections: sql`
        select
        from read
          cross join lateral (
            select site_id
            from ${connectionSites}
            where connection_id = read.id
            offset 0
          ) named
        where not ${hasSite(sql`named.site_id`)}
      `,
  documents: sql`
        select
        from read
          cross join lateral (
            select site_id
            from ${documents}
            where id = read.id
            offset 0
          ) named
        where named.site_id is not null
          and not ${hasSite(sql`named.site_id`)}
      `,
};

const namesUnknownMeter = sql`exists (
        select
        from read
          cross join lateral (
            select meter_id, raw
            from ${usageData}
            where document_id = read.id
              and deleted_at is null
              and meter_id is not null
            offset 0
          ) u
          left join lateral (
            select *
            from ${meters}
            where id = u.meter_id
            offset 0
          ) m on true
        where m.id is null
          or m.deleted_at is not null
          or m.site_id::text <> metersync.id_of(u.raw -> 'site')
          or m.datasource_type <> u.raw ->> 'datasourceType'
      )`;

/** The sites that the payload of an event names, as a table `named (site)`. */
const namedIn: Readonly<Record<RecordKind, SQL>> = {
  connections: sql`(
          select relation -> 'site' as site
          from jsonb_array_elements(metersync.elements(said.payload -> 'sitesRelations')) relation
        ) named`,
  documents: sql`(select said.payload -> 'site' as site) named`,
};

/** Whether the row of a record names a site, by its columns as its last read left them. */
const namesSite: Readonly<Record<RecordKind, SQL>> = {
  connections: sql`exists (
          select
          from ${connectionSites}
          where connection_id = read.id
            and site_id = site.id
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
    insert into ${sites} as held (id, company_id, name)
    select distinct on (site.id) site.id, read.company_id, site.name
    from unnest(${array(recordIds, 'text')}) as asked (record_id)
      cross join lateral (
        select *
        from ${tableOf(kind)}
        where id = asked.record_id::uuid
          and raw is not null
        offset 0
      ) read
      cross join lateral (
        select id, occurred_at
        from ${journal}
        where record_id = asked.record_id
          and kind = ${eventKind[kind]}
          and outcome = 'pending'
          and occurred_at <= read.raw_updated
        offset 0
      ) event
      cross join lateral ${payloadOf(sql`event.id`)} said
      cross join lateral ${namedIn[kind]}
      cross join lateral (
        select metersync.uuid_of(metersync.id_of(named.site)) as id, named.site ->> 'name' as name
      ) site
    where ${namesSite[kind]}
      and not ${hasSite(sql`site.id`)}
    order by site.id, event.occurred_at desc nulls last, site.name
    on conflict (id) do update set
      absent_since = null,
      absent_by = null
    where held.deleted_at is not null
      and held.raw is null`);
}
