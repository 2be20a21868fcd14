import { type SQL, sql } from 'drizzle-orm';
import { array, printedUuids } from './arrays.ts';
import type { Database, Executor } from './connect.ts';
import { plannedEachTime } from './prepare.ts';
import { type RecordResource, recordResources, tableOf } from './resources.ts';
import { deletes } from './schema/metersync.ts';
import { isStale } from './stale.ts';
import { recordRead } from './strangers.ts';

/** Resources with a listing of their own; sites stand in the records of companies, which show them whole. */
export type ListedResource = Exclude<RecordResource, 'sites'>;

/** A listing of a company, or the list of companies when there is none; of sites, then, those of all of them. */
export interface Listing {
  readonly resource: RecordResource;
  readonly companyId: string | null;
  /** Companies that settings name: they need no list to live. */
  readonly configured?: readonly string[];
}

/** What a pass showed, and when it began by the warehouse's clock. */
export interface Seen {
  readonly ids: readonly string[];
  readonly beganAt: string;
}

/** Of a company `t`: nothing of the service ever told of it, and no setting names it. */
const claimed = ({ configured = [] }: Listing): SQL => sql`t.raw is null
  and not (t.id::text = any(${array(printedUuids(configured), 'text')})) and not ${recordRead(sql`t.id`)}`;

/**
 * Rows that the listing should show. Companies of which records were read, or that settings name, may be in no list of the
 * service; nor are sites of companies whose records have no list of them.
 */
const listed = (listing: Listing): SQL => {
  const { resource, companyId } = listing;
  if (resource === 'companies')
    return sql`t.deleted_at is null and (t.raw is not null or ${claimed(listing)})`;
  if (resource !== 'sites') return sql`t.deleted_at is null and t.company_id = ${companyId}::uuid`;
  return sql`t.deleted_at is null and (${companyId}::uuid is null or t.company_id = ${companyId}::uuid)
    and exists (select from utility.companies c where c.id = t.company_id and jsonb_typeof(c.raw -> 'sites') = 'array')`;
};

/**
 * Of a row `t`: nothing but the listing has touched it since the moment: no read, and no event about it. With `offset 0` events
 * are looked up for each row, and not all of the journal for a few.
 */
export const untouchedSince = (resource: RecordResource, moment: SQL): SQL => {
  const about = resource === 'companies' ? sql`e.company_id = t.id` : sql`e.record_id = t.id::text`;
  return sql`t.first_synced_at < ${moment} and (t.synced_at is null or t.synced_at < ${moment})
    and not exists (select from metersync.journal e where ${about} and e.recorded_at >= ${moment} offset 0)`;
};

/** No event waits for the record of a row `t`: what a listing does not show yet is looked for by the catch-up, which gives it up. */
const notAwaited = (resource: RecordResource): SQL =>
  resource === 'documents' || resource === 'connections'
    ? sql`and not ${isStale(resource === 'documents' ? 'document' : 'connection', sql`t.id::text`)}`
    : sql``;

const absentFrom = ({ resource }: Listing, { ids, beganAt }: Seen): SQL => {
  const seen = resource === 'meters' ? ids : printedUuids(ids);
  // An empty list of companies is no word about those that it never showed.
  const told = resource === 'companies' && ids.length === 0 ? sql`t.raw is not null and` : sql``;
  return sql`${told} not (t.id::text = any(${array(seen, 'text')}))
    and ${untouchedSince(resource, sql`${beganAt}::timestamptz`)} ${notAwaited(resource)}`;
};

/** Live rows of a listing, and how many `among` them a pass did not see that nothing else touched since it began. */
export async function countAbsent(
  db: Executor,
  listing: Listing,
  seen: Seen,
  among: SQL = sql`true`,
): Promise<{ live: number; absent: number }> {
  const result = await db.execute<{ live: number; absent: number }>(sql`
    ${plannedEachTime}
    select count(*)::int as live, count(*) filter (where ${among} and ${absentFrom(listing, seen)})::int as absent
    from ${tableOf(listing.resource)} t where ${listed(listing)}`);
  return result.rows[0] ?? { live: 0, absent: 0 };
}

/** Whether many of a row `t` are kept: a company that no list ever showed has nothing to lose. */
const capped = ({ resource }: Listing): SQL =>
  resource === 'companies' ? sql`t.raw is not null` : sql`true`;

/** More absent rows of a listing than the larger of both are kept until somebody decides. */
export interface DeletesCap {
  readonly rows: number;
  readonly percent: number;
}

/** Whether a run may not tombstone so many of the rows that live. */
export const overCap = ({ rows, percent }: DeletesCap, gone: number, live: number): boolean =>
  gone > Math.max(rows, Math.floor((live * percent) / 100));

/**
 * Deals with the rows that stable passes did not see, except those that something else touched since the first of
 * them began. They are tombstoned, and a later read that sees the record undoes it; more of them than the cap, and
 * those whose deletion somebody rejected or undid before, are quarantined: they live until somebody decides.
 */
export async function retireAbsent(
  db: Database,
  runId: string,
  listing: Listing,
  seen: Seen,
  cap: DeletesCap,
): Promise<{ quarantined: number }> {
  const { resource, companyId } = listing;
  return await db.transaction(async (tx) => {
    await clearQuarantine(tx, listing);
    const { live, absent } = await countAbsent(tx, listing, seen, capped(listing));
    const tooMany = overCap(cap, absent, live);
    const noted = await tx.execute<{ state: string }>(sql`
      ${plannedEachTime}
      insert into metersync.deletes (run_id, company_id, resource, record_id, state, absent_since)
      select ${runId}::uuid, ${companyId}::uuid, ${resource}, t.id::text,
        case when ${tooMany} and ${capped(listing)} or exists (
          select from metersync.deletes d where d.resource = ${resource} and d.record_id = t.id::text
            and d.state in ('rejected', 'undone') offset 0
        ) then 'quarantined' else 'applied' end,
        ${seen.beganAt}::timestamptz
      from ${tableOf(resource)} t where ${listed(listing)} and ${absentFrom(listing, seen)}
      order by t.id
      on conflict (run_id, resource, record_id) do update set state = excluded.state
      returning state`);
    const tombstoned = await tombstone(
      tx,
      runId,
      resource,
      sql`d.state = 'applied' and d.company_id
      is not distinct from ${companyId}::uuid and t.deleted_at is null`,
    );
    return { tombstoned, quarantined: noted.rows.filter(({ state }) => state === 'quarantined').length };
  });
}

/** Rows of a listing that a run tombstoned for their absence, over all its attempts; with companies their sites. */
export const tombstonedBy = (runId: string, { resource, companyId }: Listing): SQL => sql`
  select count(*)
  from ${deletes}
  where ${deletes.runId} = ${runId}::uuid
    and ${deletes.state} = 'applied'
    and (
      ${deletes.resource} = ${resource} and ${deletes.companyId} is not distinct from ${companyId}::uuid
      or ${deletes.resource} = 'sites' and ${resource} = 'companies'
    )`;

export async function countTombstoned(db: Executor, runId: string, listing: Listing): Promise<number> {
  const result = await db.execute<{ rows: number }>(
    sql`select (${tombstonedBy(runId, listing)})::int as rows`,
  );
  return result.rows[0]?.rows ?? 0;
}

/** A later pass has judged the listing anew: what an earlier one left to decide is out of date. */
export const clearingQuarantine = ({ resource, companyId }: Listing): SQL => sql`
  delete from ${deletes}
  where ${deletes.state} = 'quarantined'
    and ${deletes.resource} = ${resource}
    and ${deletes.companyId} is not distinct from ${companyId}::uuid`;

export async function clearQuarantine(db: Executor, listing: Listing): Promise<void> {
  await db.execute(clearingQuarantine(listing));
}

/**
 * Tombstones what a run noted. A document that the service lists as deleted takes its usage with it, and takes over
 * `updated`, so that no late event brings it back.
 */
export async function tombstone(
  tx: Executor,
  runId: string,
  resource: RecordResource,
  which: SQL,
): Promise<number> {
  const note = noteOf(runId, resource);
  const takenOver =
    resource === 'documents' ? sql`, updated = greatest(t.updated, ${note.told(sql`d.updated`)})` : sql``;
  const result = await tx.execute(sql`
    update ${tableOf(resource)} t set deleted_at = clock_timestamp(),
      deleted_reason = ${note.told(sql`d.reason`)}${takenOver}
    where ${note.is(which)}`);
  if (resource === 'documents') {
    await tx.execute(sql`
      update utility.usage_data u set deleted_at = (select t.deleted_at from utility.documents t where t.id = u.document_id),
        deleted_reason = 'document'
      where u.id = any(${usageOfListed(runId)}) and u.deleted_at is null`);
  }
  return result.rowCount ?? 0;
}

/** The key of a row that a run noted. */
const keyOf = (resource: RecordResource): SQL =>
  sql.raw(resource === 'meters' ? 'd.record_id' : 'metersync.uuid_of(d.record_id)');

/**
 * What a run noted `d` of a row `t`. The ids of all such rows are picked first, and of each the note is looked up: rows
 * are found by their keys, however many are noted.
 */
const noteOf = (runId: string, resource: RecordResource) => {
  const own = sql`d.run_id = ${runId}::uuid and d.resource = ${resource}`;
  const note = sql`from metersync.deletes d where ${own} and d.record_id = t.id::text`;
  const ids = sql`array(select ${keyOf(resource)} from metersync.deletes d where ${own})`;
  return {
    /** Whether it is noted so. */
    is: (which: SQL): SQL => sql`t.id = any(${ids}) and exists (select ${note} and ${which} offset 0)`,
    /** A column of the note. */
    told: (column: SQL): SQL => sql`(select ${column} ${note})`,
  };
};

/** Ids of the usage of documents that a run tombstoned as the service lists them as deleted. */
const usageOfListed = (runId: string): SQL => sql`array(
  select u.id
  from metersync.deletes d
    cross join lateral (
      select * from utility.documents where id = ${keyOf('documents')} offset 0
    ) t
    cross join lateral (
      select id from utility.usage_data where document_id = t.id offset 0
    ) u
  where d.run_id = ${runId}::uuid and d.resource = 'documents' and d.reason = 'listed'
    and t.company_id = d.company_id and t.deleted_reason = 'listed')`;

/** Inferred deletions of one listing in one run, by what became of them. */
export interface InferredDeletes {
  readonly runId: string;
  readonly companyId: string | null;
  readonly resource: string;
  readonly state: 'quarantined' | 'applied' | 'rejected' | 'undone';
  /** Whether it was absent from a listing, or listed as deleted. */
  readonly reason: 'absent' | 'listed';
  readonly rows: number;
  readonly notedAt: string;
  /** Some of their ids. */
  readonly examples: readonly string[];
}

/** Newest first; only those that wait for a decision unless `all`. */
export async function readDeletes(db: Executor, { all }: { all: boolean }): Promise<InferredDeletes[]> {
  const result = await db.execute<Record<string, unknown> & InferredDeletes>(sql`
    ${plannedEachTime}
    select run_id as "runId", company_id as "companyId", resource, state, reason, count(*)::int as rows,
      max(noted_at)::text as "notedAt", (array_agg(record_id order by record_id))[1:3] as examples
    from metersync.deletes where ${all} or state = 'quarantined'
    group by run_id, company_id, resource, state, reason order by max(noted_at) desc, resource, company_id`);
  return result.rows;
}

/**
 * Tombstones what a run quarantined, except what something has touched since it was absent: that is quarantined no
 * more, and the next backfill looks at it again.
 */
export async function approveDeletes(
  db: Database,
  runId: string,
): Promise<{ tombstoned: number; spared: number }> {
  return await db.transaction(async (tx) => {
    let tombstoned = 0;
    let waiting = 0;
    for (const resource of recordResources) {
      waiting += (await lock(tx, runId, resource, 'quarantined')).length;
      tombstoned += await tombstone(
        tx,
        runId,
        resource,
        sql`d.state = 'quarantined' and t.deleted_at is null and ${untouchedSince(resource, sql`d.absent_since`)}`,
      );
      await tx.execute(sql`
        update metersync.deletes d set state = 'applied', decided_at = clock_timestamp()
        where d.run_id = ${runId}::uuid and d.resource = ${resource} and d.state = 'quarantined'
          and d.reason = (select t.deleted_reason from ${tableOf(resource)} t where t.id = ${keyOf(resource)})`);
    }
    await tx.execute(
      sql`delete from metersync.deletes where run_id = ${runId}::uuid and state = 'quarantined'`,
    );
    return { tombstoned, spared: waiting - tombstoned };
  });
}

/** Keeps what a run quarantined: no later run tombstones it either unless somebody approves. */
export async function rejectDeletes(db: Executor, runId: string): Promise<{ kept: number }> {
  const result = await db.execute(sql`
    update metersync.deletes set state = 'rejected', decided_at = clock_timestamp()
    where run_id = ${runId}::uuid and state = 'quarantined'`);
  return { kept: result.rowCount ?? 0 };
}

/** What a tombstone took over of `updated`, so that what is read next is not older. */
const givenBack = (takenOver: SQL): SQL =>
  sql`, updated = case when t.updated = ${takenOver} then coalesce(t.raw_updated, t.updated) else t.updated end`;

/** Revives what a run tombstoned and nothing has buried since; later runs ask first. */
export async function undoDeletes(db: Database, runId: string): Promise<{ revived: number }> {
  return await db.transaction(async (tx) => {
    let revived = 0;
    for (const resource of recordResources) {
      await lock(tx, runId, resource, 'applied');
      if (resource === 'documents') {
        await tx.execute(sql`
          update utility.usage_data u set deleted_at = null, deleted_reason = null
          where u.id = any(${usageOfListed(runId)}) and u.deleted_reason = 'document'
            and u.deleted_at = (select t.deleted_at from utility.documents t where t.id = u.document_id)`);
      }
      const note = noteOf(runId, resource);
      const updated = resource === 'documents' ? givenBack(note.told(sql`d.updated`)) : sql``;
      const result = await tx.execute(sql`
        update ${tableOf(resource)} t set deleted_at = null, deleted_reason = null${updated}
        where ${note.is(sql`d.state = 'applied' and t.deleted_reason = d.reason`)}`);
      revived += result.rowCount ?? 0;
    }
    await tx.execute(sql`
      update metersync.deletes set state = 'undone', decided_at = clock_timestamp()
      where run_id = ${runId}::uuid and state = 'applied'`);
    return { revived };
  });
}

async function lock(
  tx: Executor,
  runId: string,
  resource: RecordResource,
  state: InferredDeletes['state'],
): Promise<unknown[]> {
  const result = await tx.execute(sql`
    select from metersync.deletes where run_id = ${runId}::uuid and resource = ${resource} and state = ${state}
    order by record_id for update`);
  return result.rows;
}

/**
 * Rows of a company that a run had to change, or found gone, though an event should have told of it. They were changed
 * at the service after the last complete run of this listing began, so that run cannot have seen it, and a while
 * before this one did, so the event is not just on its way; and no event of the journal tells of that state or a
 * newer one. Of usage data and meters no event tells.
 */
export async function countMissed(
  db: Executor,
  runId: string,
  listing: Listing,
  graceSeconds: number,
): Promise<number> {
  const missed = missedBy(runId, listing, graceSeconds);
  const result = await db.execute<{ missed: number }>(sql`select (${missed})::int as missed`);
  return result.rows[0]?.missed ?? 0;
}

/** The same, as a query of one number. */
export function missedBy(runId: string, { resource, companyId }: Listing, graceSeconds: number): SQL {
  if (resource !== 'documents' && resource !== 'connections') return sql`0`;
  const part = (table: SQL) =>
    sql`${table}.company_id = ${companyId}::uuid and ${table}.resource = ${resource}`;
  return sql`
    select count(*)
    from ${tableOf(resource)} t
      cross join (
        select started_at as at
        from metersync.runs r
        where r.run_id = ${runId}::uuid and ${part(sql`r`)}
      ) this
      cross join (
        select max(started_at) as at
        from metersync.runs r
        where r.run_id <> ${runId}::uuid and ${part(sql`r`)} and r.state = 'complete'
      ) before
    where t.company_id = ${companyId}::uuid
      and before.at is not null
      and case
        when t.deleted_at is null
          then t.synced_at >= this.at
            and t.raw_updated >= before.at
            and t.raw_updated < this.at - make_interval(secs => ${graceSeconds})
            and not exists (
              select from metersync.journal e
              where e.record_id = t.id::text and e.occurred_at >= t.raw_updated
              offset 0
            )
        else t.deleted_reason in ('absent', 'listed') and t.deleted_at >= this.at
      end`;
}
