import { and, eq, isNotNull, isNull, not, type SQL, type SQLWrapper, sql } from 'drizzle-orm';
import type { PgColumn, PgTable } from 'drizzle-orm/pg-core';
import type { FailureCode } from '../../contract/failures.ts';
import type { CatchUpKind } from '../../contract/names.ts';
import { recordPolicy } from '../../contract/retry-policy.ts';
import { postpone } from '../catch-up/postpone.ts';
import { eventKind, isStale, keyOf, staleOf } from '../catch-up/stale.ts';
import { array, columnNames } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { hot } from '../connection/hot.ts';
import { payloadOf } from '../events/items.ts';
import { listedByCompanies, resources } from '../resources.ts';
import { journal, runs, staleRecords } from '../schema/metersync.ts';
import {
  companies,
  connections,
  documents,
  intervals,
  meters,
  sites,
  usageData,
} from '../schema/utility.ts';

/**
 * Strangers are companies and meters that are only known from events. An event is a claim: a company gets a
 * row once the service lists it, a setting names it, or its record is read. Until then its events wait, and
 * the service is asked about it.
 */

/** The code with which events of a stranger wait. */
export const strangerCode: FailureCode = 'UNKNOWN_TO_SERVICE';

type OfCompanies = PgTable & { readonly companyId?: PgColumn };

/**
 * Whether a table has a row of a company. For a plain `exists` the planner expects to meet one soon
 * when it reads all rows in order. `materialized` hides that one row is enough.
 */
export const anyOf = (
  table: OfCompanies,
  companyId: SQLWrapper,
  also = sql`true`,
): SQL => sql`exists (
  with theirs as materialized (
    select
    from ${table}
    where ${table.companyId} = ${companyId}
      and ${also}
  )
  select
  from theirs
)`;

/** Whether any record of a company was ever read from the service. */
export const recordRead = (companyId: SQLWrapper): SQL => {
  const read = listedByCompanies.map((resource) =>
    anyOf(resources[resource].table, companyId, isNotNull(resources[resource].table.raw)),
  );
  return sql`(${sql.join(read, sql` or `)})`;
};

/** Whether a company has a live row that the service confirmed. */
export async function isConfirmedCompany(db: Executor, companyId: string): Promise<boolean> {
  const isConfirmed = sql`(${companies.raw} is not null or ${recordRead(companies.id)})`;
  const live = await db
    .select({ id: companies.id })
    .from(companies)
    .where(and(eq(companies.id, companyId), isNull(companies.deletedAt), isConfirmed));
  return live.length > 0;
}

/** Whether the service lists a meter; without a row of it, whether usage or readings name it. */
async function meterExists(db: Executor, meterId: string): Promise<boolean> {
  const result = await hot(db, 'meterExists').execute<{ exists: boolean }>(sql`
    select coalesce(
      (
        select ${meters.deletedAt} is null
        from ${meters}
        where ${meters.id} = ${meterId}
      ),
      exists (
        select
        from ${usageData}
        where ${usageData.meterId} = ${meterId}
          and ${usageData.deletedAt} is null
      )
      or exists (
        select
        from ${intervals}
        where ${intervals.meterId} = ${meterId}
      )
    ) as exists`);
  return result.rows[0]?.exists ?? false;
}

/** Whether an owner, a company or (for intervals) a meter, is only known from events. */
export async function isStranger(db: Executor, kind: CatchUpKind, owner: string): Promise<boolean> {
  return !(await (kind === 'intervals' ? meterExists(db, owner) : isConfirmedCompany(db, owner)));
}

/** Whether a company `c` is only known from events, and no run has begun to read it. */
const neverRead = sql`(
  (c.synced_at is null or c.synced_at > c.first_synced_at)
  and not ${anyOf(runs, sql`c.id`)}
)`;

/**
 * Whether `admitCompany` would find the company's row, and a read of it: most companies have both.
 */
export const isAdmitted = (companyId: string): SQL => sql`exists (
  select
  from ${companies} c
  where c.id = ${companyId}::uuid
    and c.deleted_at is null
    and not ${neverRead}
  offset 0
)`;

/**
 * Inserts the row of a company that was a stranger, once a record of it was read. Its header comes from the
 * newest waiting event. Returns whether it has a row now, and whether no run has begun to read it.
 */
export async function admitCompany(
  db: Executor,
  companyId: string,
): Promise<{ admitted: boolean; neverRead: boolean }> {
  const made = [companies.id, companies.externalId, companies.publicId, companies.name];
  const result = await hot(db, 'admitCompany').execute<{ never_read: boolean }>(sql`
    with existing as materialized (
      select ${companies.id}, ${companies.syncedAt}, ${companies.firstSyncedAt}
      from ${companies}
      where ${companies.id} = ${companyId}::uuid
        and ${companies.deletedAt} is null
    ), made as (
      insert into ${companies} as held (${columnNames(made)})
      select
        ${companyId}::uuid,
        company ->> 'externalId',
        company ->> 'publicId',
        company ->> 'name'
      from (select) always
        left join (${newestHeader(companyId)}
        ) header on true
      where not exists (select from existing)
        and ${recordRead(sql`${companyId}::uuid`)}
      on conflict (id) do update set
        deleted_at = null,
        deleted_reason = null
      where held.deleted_at is not null
        and held.raw is null
      returning id, synced_at, first_synced_at
    )
    select ${neverRead} as never_read
    from (
      select * from existing
      union all
      select * from made
    ) c`);
  const [row] = result.rows;
  return { admitted: row !== undefined, neverRead: row?.never_read ?? false };
}

/** The company object of the newest event that waits for a record of the company. */
const newestHeader = (companyId: string): SQL => sql`
  select e.payload -> 'company' as company
  from unnest(array['connection', 'document']) as kinds (kind)
    cross join lateral (
      select ${staleRecords.kind}, ${staleRecords.recordId}, ${staleRecords.since}
      from ${staleRecords}
      where ${staleRecords.queue} = kinds.kind || ${`/${companyId}`}
      offset 0
    ) waiting
    cross join lateral (
      select ${journal.occurredAt}, said.payload
      from ${journal}
        cross join lateral ${payloadOf(journal.id)} said
      where ${journal.recordId} = waiting.record_id
        and ${journal.kind} = waiting.kind
        and ${journal.recordedAt} >= waiting.since
      offset 0
    ) e
  order by e.occurred_at desc nulls last, e.payload -> 'company'
  limit 1`;

/**
 * Sites without a row that waiting events of these records name. The record must have been read in
 * the state that the event names, or a newer one.
 */
export function sitesToAdmit(kind: 'connections' | 'documents', recordIds: readonly string[]): SQL {
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
        select ${journal.companyId}, ${journal.occurredAt}, said.payload
        from ${journal}
          cross join lateral ${payloadOf(journal.id)} said
        where ${journal.recordId} = waiting.record_id
          and ${journal.kind} = waiting.kind
          and ${journal.recordedAt} >= waiting.since
          and ${journal.occurredAt} <= r.raw_updated
        offset 0
      ) e
      cross join lateral (${sitesNamed[kind]}
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

/**
 * Inserts the rows of such sites. Existing rows keep their values, because the API's record takes precedence
 * over events.
 */
export async function admitSites(
  db: Executor,
  kind: 'connections' | 'documents',
  recordIds: readonly string[],
): Promise<void> {
  await hot(db, 'admitSites').execute(sql`
    insert into ${sites} as held (${columnNames([sites.id, sites.companyId, sites.name])})
    select distinct on (identified.id)
      identified.id,
      e.company_id,
      site ->> 'name'
    ${sitesToAdmit(kind, recordIds)}
    order by identified.id, e.occurred_at desc nulls last, site
    on conflict (id) do update set
      deleted_at = null,
      deleted_reason = null
    where held.deleted_at is not null
      and held.raw is null`);
}

/** Sites that an event `e` names. */
const sitesNamed: Readonly<Record<'connections' | 'documents', SQL>> = {
  connections: sql`
        select relation -> 'site' as site
        from jsonb_array_elements(metersync.elements(e.payload -> 'sitesRelations')) relation`,
  documents: sql`
        select e.payload -> 'site' as site`,
};

/**
 * Backs off the due records of a stranger. After `olderStateAttemptsMax` attempts its events are `missing`,
 * and rows that only events wrote are tombstoned. A later read of a record reopens its events.
 */
export async function postponeStranger(
  db: Executor,
  kind: CatchUpKind,
  owner: string,
  reason: string,
): Promise<void> {
  const { givenUp } = await postpone(
    db,
    kind,
    staleOf.owner(kind, owner),
    { code: strangerCode, message: `${strangerCode}: ${reason}` },
    { attemptsMax: recordPolicy.olderStateAttemptsMax },
  );
  if (kind !== 'intervals' && givenUp.length > 0) await tombstoneUnverified(db, owner);
}

/** Tombstones rows of a company that only events wrote, unless events wait or a record was read. */
export async function tombstoneUnverified(db: Executor, companyId: string): Promise<void> {
  // Records for which no event waits are tombstoned, even if events wait for other records of the company.
  for (const [table, kind] of [
    [documents, 'document'],
    [connections, 'connection'],
  ] as const)
    await tombstone(
      db,
      table,
      table.companyId,
      companyId,
      not(isStale(kind, sql`${table.id}::text`)),
    );
  await tombstone(db, sites, sites.companyId, companyId, isAlone(companyId));
  await tombstone(db, companies, companies.id, companyId, isAlone(companyId));
}

async function tombstone(
  db: Executor,
  table: typeof documents | typeof connections | typeof sites | typeof companies,
  company: PgColumn,
  companyId: string,
  also: SQL,
): Promise<void> {
  await db
    .update(table)
    .set({ deletedAt: sql`clock_timestamp()`, deletedReason: 'not_found' })
    .where(and(eq(company, companyId), isNull(table.raw), isNull(table.deletedAt), also));
}

/** Whether no record of a company was read, and no event waits for one. */
const isAlone = (companyId: string): SQL => sql`
  not ${recordRead(sql`${companyId}::uuid`)}
  and not exists (
    select
    from ${staleRecords}
    where ${staleRecords.queue} in (${`connection/${companyId}`}, ${`document/${companyId}`})
    offset 0
  )`;
