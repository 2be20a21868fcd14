import { and, eq, inArray, isNull, not, type SQL, type SQLWrapper, sql } from 'drizzle-orm';
import type { CheckName } from '../../contract/check-names.ts';
import type { CheckKind } from '../../contract/names.ts';
import { countChosen, isChosen } from '../backfill/run-companies.ts';
import { array, isAmong } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { companyChanges, dataChecks, journal } from '../schema/metersync.ts';
import { runs } from '../schema/reads.ts';
import { companies, meters } from '../schema/utility.ts';
import type { CompanyToCheck } from './check-data.ts';

/** Kinds of checks whose result also depends on the date: for example, they find what is late. */
const kindsOfADay: readonly CheckKind[] = ['bills', 'connections'];

/** Rows that a part of a run changed. */
const rowsChanged = sql`${runs.rowsInserted} + ${runs.rowsChanged} + ${runs.rowsTombstoned}`;

/**
 * Deletes the notes of checks whose result may differ now, because the company's data, the date or
 * the list of disabled checks changed. Extends all other notes up to now.
 */
export async function deleteOutdatedChecks(db: Executor, off: readonly CheckName[]): Promise<void> {
  const { companyId, runWith, seenUntil, today, checksOff } = dataChecks;
  // A statement of its own, so that the next statement sees everything written before.
  const [seen] = await db
    .select({
      since: sql<string | null>`min(${seenUntil})`,
      until: sql<string>`metersync.changes_seen_until()`,
    })
    .from(dataChecks);
  if (!seen || seen.since === null) return;
  const change = changesSince(db, sql`${seen.since}::timestamptz`).as('change');
  // Events of readings name their meter.
  const meter = db
    .select({ companyId: meters.companyId })
    .from(meters)
    .where(eq(meters.id, change.meterId))
    .limit(1)
    .as('meter');
  const company = sql<string>`coalesce(${change.companyId}, ${meter.companyId})`;
  const changed = db.$with('changed').as(
    db
      .select({
        id: company.as('company'),
        at: sql`max(${change.at})`.as('last_change'),
        atOfRecords: sql`max(${change.at}) filter (where ${change.meterId} is null)`.as(
          'last_change_of_records',
        ),
      })
      .from(change)
      .leftJoinLateral(meter, sql`true`)
      .groupBy(company),
  );
  // Only one kind of checks reads readings, which change most often.
  const readsReadings = sql`${runWith} = 'intervals'`;
  const isRead = sql`exists (
      select
      from ${runs}
      where ${runs.companyId} = ${companyId}
        and ${runs.resource} is not null
        and (${runs.resource} <> 'intervals' or ${readsReadings})
        and ${runs.finishedAt} >= ${seenUntil}
        and ${rowsChanged} > 0
    )`;
  const judged = db.$with('judged').as(
    db
      .select({
        companyId,
        runWith,
        isStale: sql<boolean>`coalesce(
          ${checksOff} <> ${array(off, 'text')}
            or ${today} <> current_date and ${isAmong(runWith, kindsOfADay)}
            or case when ${readsReadings} then ${changed.at} else ${changed.atOfRecords} end
              >= ${seenUntil}
            or ${isRead},
          false
        )`.as('is_stale'),
      })
      .from(dataChecks)
      .leftJoin(changed, eq(changed.id, companyId)),
  );
  const stale = db
    .select({ companyId: judged.companyId, runWith: judged.runWith })
    .from(judged)
    .where(sql`${judged.isStale}`);
  const outdated = db
    .$with('outdated')
    .as(db.delete(dataChecks).where(sql`(${companyId}, ${runWith}) in ${stale}`));
  await db
    .with(changed, judged, outdated)
    .update(dataChecks)
    .set({ seenUntil: sql`${seen.until}::timestamptz` })
    .from(judged)
    .where(
      and(
        eq(companyId, judged.companyId),
        eq(runWith, judged.runWith),
        not(sql`${judged.isStale}`),
      ),
    );
}

/**
 * Lists companies whose data changed since their last check, each with the kinds of checks to run.
 * If companies were chosen for the run, only these are listed.
 */
export async function companiesToCheck(
  db: Executor,
  { runId, kinds }: { readonly runId: string; readonly kinds: readonly CheckKind[] },
): Promise<CompanyToCheck[]> {
  const { companyId, runWith } = dataChecks;
  return await db
    .select({
      id: companies.id,
      kinds: sql<CheckKind[]>`array_agg(asked.kind order by asked.place)`,
    })
    .from(companies)
    .crossJoin(sql`unnest(${array(kinds, 'text')}) with ordinality as asked (kind, place)`)
    .leftJoin(dataChecks, and(eq(companyId, companies.id), eq(runWith, sql`asked.kind`)))
    .where(
      and(
        isNull(companyId),
        (await countChosen(db, runId, 1)) > 0 ? isChosen(db, runId, companies.id) : undefined,
      ),
    )
    .groupBy(companies.id)
    .orderBy(companies.id);
}

/**
 * Selects companies whose records changed since a time, and companies and meters of events applied
 * since. When the months of a company are computed, its row in `company_changes` gets a new time, so
 * the company counts again.
 */
const changesSince = (db: Executor, since: SQL) =>
  eventsAppliedSince(db, since).unionAll(
    db
      .select({
        companyId: sql<string | null>`${companyChanges.companyId}`,
        meterId: sql<string | null>`null`,
        at: sql<string>`${companyChanges.changedAt}`,
      })
      .from(companyChanges)
      .where(isSince(companyChanges.changedAt, since)),
  );

/**
 * Selects companies and meters of events that were applied since a time. The first part looks only
 * at events received up to a day before that time, because the index is on the time of receipt. The
 * second part finds events that were settled later than a day after their receipt, by `aside`.
 */
const eventsAppliedSince = (db: Executor, since: SQL) => {
  const columns = (appliedAt: SQLWrapper) => ({
    companyId: sql<string | null>`${journal.companyId}`.as('changed_company'),
    meterId: sql<
      string | null
    >`case when ${journal.kind} = 'interval' then ${journal.recordId} end`.as('changed_meter'),
    at: sql<string>`${appliedAt}`.as('changed_at'),
  });
  const appliedAt = sql`coalesce(${journal.settledAt}, ${journal.recordedAt})`;
  return db
    .select(columns(appliedAt))
    .from(journal)
    .where(
      and(
        isSince(journal.receivedAt, sql`${since} - interval '1 day'`),
        inArray(journal.outcome, ['applied', 'superseded']),
        sql`${appliedAt} >= ${since}`,
      ),
    )
    .unionAll(
      db
        .select(columns(journal.asideAt))
        .from(journal)
        .where(
          and(inArray(journal.aside, ['superseded', 'late']), isSince(journal.asideAt, since)),
        ),
    );
};

/**
 * Whether a time is at or after `since`. With only one bound, the planner would expect a third of
 * all rows, whatever the bound is.
 */
const isSince = (time: SQLWrapper, since: SQL): SQL => sql`${time} between ${since} and 'infinity'`;
