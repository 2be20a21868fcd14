import { type SQL, sql } from 'drizzle-orm';
import { type DeletesCap, overCap, tombstone, untouchedSince } from './absent.ts';
import { array, printedUuids, uuid } from './arrays.ts';
import type { Database, Executor } from './connect.ts';

/** The day, by UTC, from which on a reconcile reads what was updated: so many before today. */
export async function reconciledSince(db: Executor, days: number): Promise<string> {
  const result = await db.execute<{ since: string }>(
    sql`select ((clock_timestamp() at time zone 'UTC')::date - ${days}::int)::text as since`,
  );
  return result.rows[0]?.since ?? '';
}

/** A document as a listing showed it; `updated` is the service's own text. */
export interface ListedDocument {
  readonly id: string;
  readonly updated: string | null;
}

/** What became of documents that the service lists as deleted. */
export interface ListedDeletes {
  /** Documents of the company that lived before. */
  readonly live: number;
  readonly tombstoned: number;
  /** Those that live until somebody decides. */
  readonly quarantined: number;
}

/**
 * Deals with documents that the service lists as deleted, except what something else touched since `beganAt`, what is
 * newer than the state that the listing showed, and of what somebody decided that very state. They are tombstoned, and
 * the usage that came from them: a later read that sees them undoes it. More of them than the cap, and those whose
 * deletion somebody rejected or undid before, are quarantined: they live until somebody decides.
 */
export async function retireListed(
  db: Database,
  runId: string,
  companyId: string,
  documents: readonly ListedDocument[],
  beganAt: string,
  cap: DeletesCap,
): Promise<ListedDeletes> {
  const gone = goneBy(companyId, documents, beganAt);
  return await db.transaction(async (tx) => {
    const found = await tx.execute<{ live: number; gone: number }>(sql`with ${gone}
      select (select count(*)::int from utility.documents where company_id = ${companyId}::uuid and deleted_at is null)
        as live, (select count(*)::int from gone) as gone`);
    const counts = found.rows[0] ?? { live: 0, gone: 0 };
    if (counts.gone === 0) return { live: counts.live, tombstoned: 0, quarantined: 0 };
    const decidedBefore = (states: SQL): SQL => sql`exists (select from metersync.deletes d
      where d.resource = 'documents' and d.record_id = gone.id and d.state in (${states}) offset 0)`;
    // What waits for a decision already keeps its run: somebody may be about to name it.
    await tx.execute(sql`with ${gone}
      update metersync.deletes d set absent_since = ${beganAt}::timestamptz, updated = gone.updated from gone
      where d.resource = 'documents' and d.record_id = gone.id and d.state = 'quarantined' and d.reason = 'listed'`);
    await tx.execute(sql`with ${gone}
      insert into metersync.deletes (run_id, company_id, resource, record_id, state, reason, updated, absent_since)
      select ${runId}::uuid, ${companyId}::uuid, 'documents', id,
        case when ${overCap(cap, counts.gone, counts.live)} or ${decidedBefore(sql`'rejected', 'undone'`)}
          then 'quarantined' else 'applied' end,
        'listed', updated, ${beganAt}::timestamptz
      from gone where not ${decidedBefore(sql`'quarantined'`)} order by id
      on conflict (run_id, resource, record_id) do update set state = excluded.state, updated = excluded.updated,
        absent_since = excluded.absent_since`);
    const waiting = await tx.execute<{ waiting: number }>(sql`with ${gone}
      select count(*)::int as waiting from gone where ${decidedBefore(sql`'quarantined'`)}`);
    const tombstoned = await tombstone(
      tx,
      runId,
      'documents',
      sql`d.state = 'applied' and t.company_id = ${companyId}::uuid and t.deleted_at is null
        and ${untouchedSince('documents', sql`d.absent_since`)}`,
    );
    return { live: counts.live, tombstoned, quarantined: waiting.rows[0]?.waiting ?? 0 };
  });
}

/** The documents as `gone(id, updated)`, held against whoever else writes them; a listing that moves shows one twice. */
function goneBy(companyId: string, documents: readonly ListedDocument[], beganAt: string): SQL {
  // Documents of other ids are in no table.
  const known = documents.filter(({ id }) => uuid.test(id));
  const ids = printedUuids(known.map(({ id }) => id));
  const updated = known.map((document) => document.updated);
  return sql`listed as (
    select distinct on (id) id, metersync.read_time(l.updated) as updated
    from unnest(${array(ids, 'uuid')}, ${array(updated, 'text')}) as l (id, updated)
    order by id, 2 desc nulls last
  ), gone as materialized (
    select t.id::text as id, l.updated from utility.documents t join listed l on l.id = t.id
    where t.company_id = ${companyId}::uuid and t.deleted_at is null
      and (t.updated is null or l.updated is null or l.updated >= t.updated)
      and ${untouchedSince('documents', sql`${beganAt}::timestamptz`)}
      and not exists (select from metersync.deletes d
        where d.resource = 'documents' and d.record_id = t.id::text and d.reason = 'listed'
          and d.state in ('rejected', 'undone') and d.updated is not distinct from l.updated offset 0)
    order by t.id for update of t)`;
}

/** Documents that a listing of the living shows wait for no decision about their deletion. */
export async function clearListed(
  db: Executor,
  companyId: string,
  liveIds: readonly string[],
): Promise<void> {
  await db.execute(sql`
    delete from metersync.deletes where state = 'quarantined' and reason = 'listed' and resource = 'documents'
      and company_id = ${companyId}::uuid and record_id = any(${array(printedUuids(liveIds), 'text')})`);
}
