import { and, desc, eq, isNull, lt, notExists, type SQL, sql } from 'drizzle-orm';
import { alias } from 'drizzle-orm/pg-core';
import { companyResources } from '../../contract/endpoints.ts';
import { runKinds } from '../../contract/names.ts';
import { array, literal } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { pages, runs } from '../schema/metersync.ts';
import { companies } from '../schema/utility.ts';
import { isWhole } from './runs.ts';

const part = alias(runs, 'part');
const later = alias(runs, 'later');
const kinds = sql`unnest(${array(runKinds, 'text')}) as kinds (kind)`;
const listings = sql`unnest(${array(companyResources, 'text')}) as listing (resource)`;

/**
 * Deletes parts of runs that ended more than `days` ago and that a later run of their kind read
 * completely; returns how many. The last complete part of a listing stays at any age: the next run
 * compares with it. So do the rows of the runs, which sum up their parts.
 */
export async function dropOldParts(
  db: Executor,
  { days, limit }: { days: number; limit: number },
): Promise<number> {
  const place = sql`old.place`;
  const ofCompanies = oldParts(db, days, (run) =>
    and(eq(run.companyId, companies.id), eq(run.resource, sql`listing.resource`)),
  );
  const ofList = oldParts(db, days, (run) =>
    and(isNull(run.companyId), eq(run.resource, 'companies')),
  );
  const old = db
    .select({ place })
    .from(kinds)
    .crossJoin(companies)
    .crossJoin(listings)
    .crossJoinLateral(ofCompanies)
    .unionAll(db.select({ place }).from(kinds).crossJoinLateral(ofList))
    .limit(limit);
  const { rowCount } = await db.delete(runs).where(sql`ctid = any(array${old})`);
  return rowCount ?? 0;
}

/** Selects the old parts of a listing; `isOf` says whether a part is one of the listing's. */
function oldParts(
  db: Executor,
  days: number,
  isOf: (run: typeof part | typeof later) => SQL | undefined,
) {
  const complete = db
    .select({ at: later.finishedAt })
    .from(later)
    .where(and(isOf(later), sql`${later.kind} = kinds.kind`, eq(later.state, 'complete')))
    .orderBy(desc(later.finishedAt))
    .limit(1)
    .as('complete');
  const before = sql`least(${complete.at}, now() - make_interval(days => ${days}::int))`;
  const theirs = db
    .select({ place: sql`ctid`.as('place') })
    .from(part)
    .where(and(isOf(part), sql`${part.kind} = kinds.kind`, lt(part.finishedAt, before)))
    .offset(literal(0))
    .as('theirs');
  return db.select({ place: theirs.place }).from(complete).crossJoinLateral(theirs).as('old');
}

/** The runs that have pages of manifests: looks up each run once, however many pages it has. */
const withPages = sql`(
  with recursive run as (
    (select run_id from ${pages} order by run_id limit 1)
    union all
    select (select run_id from ${pages} where run_id > run.run_id order by run_id limit 1)
    from run
    where run.run_id is not null
  )
  select run_id from run where run_id is not null
) as having_pages`;

/**
 * Deletes pages of manifests whose run is not under way; returns how many. A listing that ends
 * forgets its own; one that is refused, given up or cancelled leaves them.
 */
export async function dropLeftPages(
  db: Executor,
  { limit }: { readonly limit: number },
): Promise<number> {
  const ofRun = sql`having_pages.run_id`;
  const underWay = db
    .select({})
    .from(runs)
    .where(and(eq(runs.runId, ofRun), isWhole(runs), isNull(runs.finishedAt)))
    .offset(literal(0));
  const theirs = db
    .select({ place: sql`ctid`.as('place') })
    .from(pages)
    .where(eq(pages.runId, ofRun))
    .offset(literal(0))
    .as('theirs');
  const left = db
    .select({ place: theirs.place })
    .from(withPages)
    .crossJoinLateral(theirs)
    .where(notExists(underWay))
    .limit(limit);
  const { rowCount } = await db.delete(pages).where(sql`ctid = any(array${left})`);
  return rowCount ?? 0;
}
