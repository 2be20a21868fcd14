import {
  and,
  count,
  desc,
  eq,
  exists,
  isNotNull,
  isNull,
  max,
  ne,
  not,
  notExists,
  or,
  type SQL,
  sql,
} from 'drizzle-orm';
import { alias } from 'drizzle-orm/pg-core';
import { type RunKind, type RunState, runStates } from '../../contract/names.ts';
import { onlyUntilDecided } from '../../contract/words.ts';
import type { KindOfRuns } from '../../health/measured.ts';
import { isWhole } from '../backfill/runs.ts';
import type { Executor } from '../connection/connect.ts';
import { noCompany, pages, runCompanies, runs } from '../schema/metersync.ts';
import { secondsSince } from './counted.ts';

const part = alias(runs, 'part');

/**
 * Reads the runs of a kind. A run that is suspect only because of deletions has read everything, so
 * it counts as complete once somebody has decided on them.
 * @param undecided number of deletions that wait for a decision
 */
export async function readKindOfRuns(
  db: Executor,
  kind: RunKind,
  undecided: number,
): Promise<KindOfRuns> {
  const underWay = await readUnderWay(db, kind);
  const last = await readLast(db, kind);
  const counted = last && (await countParts(db, last.runId));
  const readAll = last?.state === 'suspect' && counted?.toDecide === counted?.parts.suspect;
  const decided = readAll && undecided === 0;
  return {
    ...underWay,
    last: last &&
      counted && {
        ...last,
        ...(decided ? { state: 'complete', error: null } : {}),
        awaitsDecision: readAll && !decided,
        parts: counted.parts,
      },
    ...(await readLastComplete(db, kind, readAll ? last.runId : undefined)),
  };
}

/** Whether any full run of all companies has ended with data. */
export async function isLoaded(db: Executor): Promise<boolean> {
  const withData = sql`${runs.state} in ('complete', 'partial', 'suspect')`;
  const [ended] = await db
    .select({ runId: runs.runId })
    .from(runs)
    .where(and(isOfKind('full'), withData, not(isOfChosen)))
    .limit(1);
  return ended !== undefined;
}

/** Whether a run that began after a time has read all companies completely; of any kind if none is given. */
export function readAllSince(db: Executor, after: SQL, kind?: RunKind): SQL {
  const run = alias(runs, 'whole');
  const chosen = db.select({}).from(runCompanies).where(eq(runCompanies.runId, run.runId));
  const complete = db
    .select({})
    .from(run)
    .where(
      and(
        isWhole(run),
        kind === undefined ? undefined : eq(run.kind, kind),
        eq(run.state, 'complete'),
        // Implied by the start, but the index has the end.
        sql`${run.finishedAt} > ${after}`,
        sql`${run.startedAt} > ${after}`,
        notExists(chosen),
      ),
    );
  return exists(complete);
}

const isOfKind = (kind: RunKind): SQL | undefined => and(isWhole(runs), eq(runs.kind, kind));

const hasChosen = (company: SQL | undefined): SQL => sql`exists (
      select
      from ${runCompanies}
      where ${and(eq(runCompanies.runId, runs.runId), company)}
    )`;

const isOfChosen = hasChosen(undefined);
/** The first event of a company starts its first backfill, whose run id is the company's id. */
const isFirstBackfill = hasChosen(eq(runCompanies.companyId, runs.runId));

async function readUnderWay(db: Executor, kind: RunKind) {
  const ofRun = and(eq(part.runId, runs.runId), isNotNull(part.resource));
  const latest = db
    .select({ readAt: pages.readAt })
    .from(pages)
    .where(
      and(
        eq(pages.runId, runs.runId),
        eq(pages.companyId, sql`coalesce(${part.companyId}, ${noCompany}::uuid)`),
        eq(pages.resource, part.resource),
      ),
    )
    .orderBy(desc(pages.pass), desc(pages.asked))
    .limit(1)
    .as('latest');
  const begun = db
    .select({
      at: sql`max(greatest(${part.startedAt}, ${part.progressAt}, ${latest.readAt}))`.as(
        'begun_at',
      ),
    })
    .from(part)
    .leftJoinLateral(latest, sql`true`)
    .where(and(ofRun, isNull(part.finishedAt)))
    .as('begun');
  const ended = db
    .select({ at: max(part.finishedAt).as('ended_at') })
    .from(part)
    .where(ofRun)
    .as('ended');
  const progressAt = sql<string>`greatest(${runs.startedAt}, ${begun.at}, ${ended.at})`;
  const [first] = await db
    .select({
      running: sql<number>`count(*) over ()::int`,
      underWay: {
        runId: runs.runId,
        startedAt: runs.startedAt,
        progressAt,
        progressSecondsAgo: secondsSince(progressAt),
      },
    })
    .from(runs)
    .crossJoinLateral(begun)
    .crossJoinLateral(ended)
    .where(and(isOfKind(kind), isNull(runs.finishedAt)))
    .orderBy(progressAt)
    .limit(1);
  return first ?? { running: 0, underWay: null };
}

async function readLast(db: Executor, kind: RunKind) {
  const { runId, state, startedAt, finishedAt, error, rowsMissed } = runs;
  const [last] = await db
    .select({
      runId,
      state,
      startedAt,
      finishedAt: sql<string>`${finishedAt}`,
      error,
      missedRows: rowsMissed,
    })
    .from(runs)
    .where(
      and(isOfKind(kind), isNotNull(finishedAt), or(ne(state, 'complete'), not(isFirstBackfill))),
    )
    .orderBy(desc(finishedAt))
    .limit(1);
  return last ?? null;
}

async function readLastComplete(db: Executor, kind: RunKind, readAll: string | undefined) {
  const [last] = await db
    .select({
      lastCompleteAt: sql<string>`${runs.finishedAt}`,
      lastCompleteSecondsAgo: secondsSince(runs.finishedAt),
    })
    .from(runs)
    .where(
      and(
        isOfKind(kind),
        or(eq(runs.state, 'complete'), readAll === undefined ? undefined : eq(runs.runId, readAll)),
        isNotNull(runs.finishedAt),
        not(isOfChosen),
      ),
    )
    .orderBy(desc(runs.finishedAt))
    .limit(1);
  return last ?? { lastCompleteAt: null, lastCompleteSecondsAgo: null };
}

/** Counts the parts of a run by state, and the parts that only wait for a decision on deletions. */
async function countParts(db: Executor, runId: string) {
  const counts = await db
    .select({
      state: runs.state,
      parts: count(),
      toDecide: sql<number>`(count(*) filter (where ${runs.error} ~ ${onlyUntilDecided}))::int`,
    })
    .from(runs)
    .where(and(eq(runs.runId, runId), isNotNull(runs.resource)))
    .groupBy(runs.state);
  const none = Object.fromEntries(runStates.map((state) => [state, 0])) as Record<RunState, number>;
  return {
    parts: { ...none, ...Object.fromEntries(counts.map(({ state, parts }) => [state, parts])) },
    toDecide: counts.find(({ state }) => state === 'suspect')?.toDecide ?? 0,
  };
}
