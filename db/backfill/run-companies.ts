import { and, eq, gt, inArray, isNull, not, type SQL, sql } from 'drizzle-orm';
import type { PgColumn } from 'drizzle-orm/pg-core';
import { array, isAmong, literal } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { runCompanies, runLanes, runs } from '../schema/reads.ts';
import { companies, meters } from '../schema/utility.ts';

/** Stores the companies chosen for a run, which may be too many for a workflow's arguments. */
export async function chooseCompanies(
  db: Executor,
  runId: string,
  ids: readonly string[],
): Promise<void> {
  await db
    .insert(runCompanies)
    .select(
      db
        .selectDistinct({
          runId: sql`${runId}::uuid`.as('run_id'),
          companyId: sql`id`.as('company_id'),
          refused: sql`false`.as('refused'),
        })
        .from(sql`unnest(${array(ids, 'uuid')}) id`),
    )
    .onConflictDoUpdate({
      target: [runCompanies.runId, runCompanies.companyId],
      set: { refused: false },
    });
}

/** Counts the companies that were chosen for a run, up to `most`. A run of all companies has none. */
export async function countChosen(db: Executor, runId: string, most: number): Promise<number> {
  const chosen = await db
    .select({ companyId: runCompanies.companyId })
    .from(runCompanies)
    .where(eq(runCompanies.runId, runId))
    .limit(most);
  return chosen.length;
}

/** Notes which chosen companies the service does not have. */
export async function refuseChosen(
  db: Executor,
  runId: string,
  ids: readonly string[],
): Promise<void> {
  if (ids.length === 0) return;
  await db
    .update(runCompanies)
    .set({ refused: true })
    .where(and(eq(runCompanies.runId, runId), isAmong(runCompanies.companyId, ids, 'uuid')));
}

/** One of the activities that share the companies of a run. */
interface LaneKey {
  readonly runId: string;
  readonly lane: number;
}

/** Stands behind all companies. */
const lastId = 'ffffffff-ffff-ffff-ffff-ffffffffffff';

/**
 * Gives a lane the next company of its run, in the order of the ids; undefined when no company is
 * left, or the run has ended. The company is the lane's until it is `done`. Each company goes to one
 * lane, because a concurrent claim waits for the row of the run and continues after it.
 * @param key.chosen whether companies were chosen for the run; otherwise it reads all live companies
 * @param done the company that the lane has read to its end
 */
export async function nextCompany(
  db: Executor,
  { runId, lane, chosen }: LaneKey & { readonly chosen: boolean },
  done: string | null = null,
): Promise<string | undefined> {
  const next = chosen
    ? sql`
        select company_id
        from ${runCompanies}
        where run_id = ${runId}
          and company_id > run.claimed_to
        order by company_id
        limit 1`
    : sql`
        select id
        from ${companies}
        where deleted_at is null
          and id > run.claimed_to
        order by id
        limit 1`;
  const { rows } = await db.execute<{ id: string }>(sql`
    with finished as (
      delete from ${runLanes}
      where run_id = ${runId}
        and company_id = ${done}
    ),
    claimed as (
      update ${runs} run
      set claimed_to = coalesce((${next}
      ), ${lastId})
      where run_id = ${runId}
        and company_id is null
        and resource is null
        and finished_at is null
      returning claimed_to
    )
    insert into ${runLanes} as reading (run_id, company_id, lane)
    select ${runId}::uuid, claimed_to, ${lane}::int
    from claimed
    where claimed_to <> ${lastId}
    on conflict (run_id, company_id) do update set lane = excluded.lane
    returning reading.company_id as id`);
  return rows[0]?.id;
}

/**
 * Returns a company that a lane has taken and not read to its end; undefined if there is none. After
 * a crash it is the company that the lane was reading. A lane whose worker lost Temporal for a while
 * may have two: both attempts took companies.
 */
export async function unreadOfLane(
  db: Executor,
  { runId, lane }: LaneKey,
): Promise<string | undefined> {
  const { rows } = await db.execute<{ id: string }>(sql`
    select company_id as id
    from ${runLanes}
    where run_id = ${runId}
      and lane = ${lane}
    order by company_id
    limit 1`);
  return rows[0]?.id;
}

/** Whether a company was chosen for a run, and the service has it. */
export const isChosen = (db: Executor, runId: string, companyId: PgColumn): SQL =>
  inArray(
    companyId,
    db
      .select({ companyId: runCompanies.companyId })
      .from(runCompanies)
      .where(and(eq(runCompanies.runId, runId), not(runCompanies.refused))),
  );

/** Lists ids of companies to backfill, in order, after the given company. */
export async function companiesAfter(
  db: Executor,
  after: string | null,
  limit: number,
): Promise<string[]> {
  const next = await db
    .select({ id: companies.id })
    .from(companies)
    .where(and(isNull(companies.deletedAt), after === null ? undefined : gt(companies.id, after)))
    .orderBy(companies.id)
    .limit(limit);
  return next.map(({ id }) => id);
}

/** Lists live meters of a company, in order, after the given meter. */
export async function metersAfter(
  db: Executor,
  companyId: string,
  after: string | null,
  limit: number,
): Promise<string[]> {
  // In one query with an order and a limit, the planner would scan all meters.
  const theirs = db
    .select({ id: meters.id })
    .from(meters)
    .where(and(eq(meters.companyId, companyId), isNull(meters.deletedAt)))
    .offset(literal(0))
    .as('theirs');
  const next = await db
    .select({ id: theirs.id })
    .from(theirs)
    .where(after === null ? undefined : gt(theirs.id, after))
    .orderBy(theirs.id)
    .limit(limit);
  return next.map(({ id }) => id);
}
