import { type SQL, sql } from 'drizzle-orm';
import type { FailureCode } from '../contract/failures.ts';
import type { CatchUpKind } from '../contract/names.ts';
import { array } from './arrays.ts';
import { olderShownAttemptsMax } from './catch-up.ts';
import type { Executor } from './connect.ts';
import { eventKind, isStale, keyOf, postpone, staleOf } from './stale.ts';

/**
 * What nothing but events tells of. An event is a claim: a company has a row once the service lists it, a record of it was
 * read, or a setting names it. Until then its events wait, and the service is asked about them.
 */

/** What events of a stranger wait for. */
export const strangerCode: FailureCode = 'UNKNOWN_TO_SERVICE';

/**
 * Whether there is a row of a company, which is looked for in those of the company. Where a first row alone is asked for, the
 * planner thinks that one is soon met when all are read in their order; `materialized` hides how few are asked for.
 */
const anyOf = (table: SQL, companyId: SQL, also = sql`true`): SQL => sql`exists (
  with theirs as materialized (select from ${table} r where r.company_id = ${companyId} and ${also})
  select from theirs)`;

/** Whether any record of a company was ever read from the service. */
export const recordRead = (companyId: SQL): SQL =>
  sql`(${sql.join(
    ['documents', 'connections', 'usage_data', 'meters'].map((table) =>
      anyOf(sql.raw(`utility.${table}`), companyId, sql`r.raw is not null`),
    ),
    sql` or `,
  )})`;

/** Whether a company has a row that lives, and that the service vouches for. */
export async function isKnownCompany(db: Executor, companyId: string): Promise<boolean> {
  const result = await db.execute(sql`
    select from utility.companies c
    where c.id = ${companyId}::uuid and c.deleted_at is null and (c.raw is not null or ${recordRead(sql`c.id`)})`);
  return (result.rowCount ?? 0) > 0;
}

/** Whether a meter is one that the service lists, or where it lists none, one that usage or readings name. */
async function isKnownMeter(db: Executor, meterId: string): Promise<boolean> {
  const result = await db.execute<{ known: boolean }>(sql`
    select coalesce(
      (select deleted_at is null from utility.meters where id = ${meterId}),
      exists (select from utility.usage_data where meter_id = ${meterId} and deleted_at is null)
        or exists (select from utility.intervals where meter_id = ${meterId})) as known`);
  return result.rows[0]?.known ?? false;
}

/** Whether nothing but events tells of whose events a catch-up reads: a company, or a meter for intervals. */
export async function isStranger(db: Executor, kind: CatchUpKind, owner: string): Promise<boolean> {
  return !(await (kind === 'intervals' ? isKnownMeter(db, owner) : isKnownCompany(db, owner)));
}

/** Whether nothing was read of a company `c` but what events told of, and no run has begun to. */
const neverRead: SQL = sql`((c.synced_at is null or c.synced_at > c.first_synced_at)
      and not ${anyOf(sql`metersync.runs`, sql`c.id`)})`;

/** Whether `admitCompany` would find the company there, and read: most are. */
export const isAdmitted = (companyId: string): SQL => sql`exists (
  select from utility.companies c
  where c.id = ${companyId}::uuid and c.deleted_at is null and not ${neverRead} offset 0)`;

/**
 * Makes the row of a company that was a stranger, once a record of it was read; its header is that of the newest event
 * that waits. Returns whether it has one now, and whether no run has begun to read it.
 */
export async function admitCompany(
  db: Executor,
  companyId: string,
): Promise<{ admitted: boolean; neverRead: boolean }> {
  const result = await db.execute<{ never_read: boolean }>(sql`
    with known as materialized (
      select id, synced_at, first_synced_at
      from utility.companies
      where id = ${companyId}::uuid and deleted_at is null
    ), made as (
      insert into utility.companies as c (id, external_id, public_id, name)
      select ${companyId}::uuid, company ->> 'externalId', company ->> 'publicId', company ->> 'name'
      from (select) always left join (
        select e.payload -> 'company' as company
        from unnest(array['connection', 'document']) as kinds (kind)
          cross join lateral (
            select kind, record_id, since from metersync.stale_records
            where queue = kinds.kind || ${`/${companyId}`} offset 0
          ) s
          cross join lateral (
            select occurred_at, payload from metersync.journal
            where record_id = s.record_id and kind = s.kind and recorded_at >= s.since offset 0
          ) e
        order by e.occurred_at desc nulls last, e.payload -> 'company' limit 1
      ) told on true
      where not exists (select from known) and ${recordRead(sql`${companyId}::uuid`)}
      on conflict (id) do update set deleted_at = null, deleted_reason = null
      where c.deleted_at is not null and c.raw is null
      returning id, synced_at, first_synced_at
    )
    select ${neverRead} as never_read
    from (select * from known union all select * from made) c`);
  const [row] = result.rows;
  return { admitted: row !== undefined, neverRead: row?.never_read ?? false };
}

/**
 * Where sites come from that events name which wait for these records, where the record was read in the state that the event told
 * of or a newer one, and which no row has.
 */
export function sitesToAdmit(kind: 'connections' | 'documents', recordIds: readonly string[]): SQL {
  const table = kind === 'documents' ? sql`utility.documents` : sql`utility.connections`;
  const sites =
    kind === 'documents'
      ? sql`(select e.payload -> 'site' as site)`
      : sql`(select relation -> 'site' as site
          from jsonb_array_elements(metersync.elements(e.payload -> 'sitesRelations')) relation)`;
  return sql`
    from unnest(${array(recordIds, 'text')}) as asked (record_id)
      cross join lateral (
        select kind, record_id, since from metersync.stale_records
        where key = ${keyOf(eventKind[kind], sql`asked.record_id`)} offset 0
      ) waiting
      cross join lateral (
        select raw_updated from ${table} where id = waiting.record_id::uuid and raw is not null offset 0
      ) r
      cross join lateral (
        select company_id, occurred_at, payload from metersync.journal
        where record_id = waiting.record_id and kind = waiting.kind and recorded_at >= waiting.since
          and occurred_at <= r.raw_updated offset 0
      ) e
      cross join lateral ${sites} named
      cross join lateral (select metersync.uuid_of(metersync.id_of(site)) as id) as identified
    where identified.id is not null
      and not exists (
        select from utility.sites known
        where known.id = identified.id and (known.deleted_at is null or known.raw is not null) offset 0)`;
}

/** Makes rows of such sites. Rows that are known keep their values: the API's record is the truth. */
export async function admitSites(
  db: Executor,
  kind: 'connections' | 'documents',
  recordIds: readonly string[],
): Promise<void> {
  await db.execute(sql`
    insert into utility.sites as s (id, company_id, name)
    select distinct on (identified.id) identified.id, e.company_id, site ->> 'name'
    ${sitesToAdmit(kind, recordIds)}
    order by identified.id, e.occurred_at desc nulls last, site
    on conflict (id) do update set deleted_at = null, deleted_reason = null
    where s.deleted_at is not null and s.raw is null`);
}

/**
 * Has what is due of a stranger wait, each time longer. After an hour and a half its events are `missing`, and what they
 * alone wrote is gone; whatever shows a record later has its events looked at again.
 */
export async function postponeStranger(
  db: Executor,
  kind: CatchUpKind,
  owner: string,
  reason: string,
): Promise<void> {
  const { givenUp } = await postpone(
    db,
    staleOf.owner(kind, owner),
    { code: strangerCode, message: `${strangerCode}: ${reason}` },
    { attemptsMax: olderShownAttemptsMax },
  );
  if (kind !== 'intervals' && givenUp.length > 0) await forgetStranger(db, owner);
}

/** Tombstones what events alone wrote of a company, unless some of them still wait or a record of it was read. */
export async function forgetStranger(db: Executor, companyId: string): Promise<void> {
  const id = sql`${companyId}::uuid`;
  const gone = sql`set deleted_at = clock_timestamp(), deleted_reason = 'not_found'`;
  for (const [table, kind] of [
    [sql`utility.documents`, 'document'],
    [sql`utility.connections`, 'connection'],
  ] as const) {
    await db.execute(sql`
      update ${table} r ${gone}
      where r.company_id = ${id} and r.raw is null and r.deleted_at is null
        and not ${isStale(kind, sql`r.id::text`)}`);
  }
  const alone = sql`raw is null and deleted_at is null and not ${recordRead(id)} and not exists (
    select from metersync.stale_records
    where queue = any(array[${`connection/${companyId}`}, ${`document/${companyId}`}]) offset 0)`;
  await db.execute(sql`update utility.sites ${gone} where company_id = ${id} and ${alone}`);
  await db.execute(sql`update utility.companies ${gone} where id = ${id} and ${alone}`);
}
