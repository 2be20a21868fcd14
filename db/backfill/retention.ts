import { and, desc, eq, isNull, lt, type SQL, sql } from 'drizzle-orm';
import { alias } from 'drizzle-orm/pg-core';
import { companyResources } from '../../contract/endpoints.ts';
import { runKinds } from '../../contract/names.ts';
import { array, literal } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { runs } from '../schema/reads.ts';
import { companies } from '../schema/utility.ts';

const part = alias(runs, 'part');
const later = alias(runs, 'later');
const kinds = sql`unnest(${array(runKinds, 'text')}) as kinds (kind)`;
const listings = sql`unnest(${array(companyResources, 'text')}) as listing (resource)`;

/**
 * Deletes parts of runs that ended more than `days` ago if a later run of the same kind read the
 * same listing completely; the next run compares with the last complete part. The rows of the runs,
 * which sum up their parts, stay. Returns how many parts were deleted.
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

/** Selects the old parts of a listing; `isOf` says whether a part belongs to the listing. */
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
