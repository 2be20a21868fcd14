import { and, count, eq, gte, inArray, isNotNull, max, min, ne, notExists, sql } from 'drizzle-orm';
import { alias } from 'drizzle-orm/pg-core';
import { attemptPolicy } from '../../contract/retry-policy.ts';
import { literal } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import type { Listing } from '../deletes/absence.ts';
import { journal } from '../schema/metersync.ts';
import { runs } from '../schema/reads.ts';
import { connections, documents } from '../schema/utility.ts';

const part = alias(runs, 'part');

/** Counts records that a run changed or found gone without an event about it: see `missedBy`. */
export async function countMissed(db: Executor, runId: string, listing: Listing): Promise<number> {
  const [missed] = (await missedBy(db, runId, listing)) ?? [];
  return missed?.rows ?? 0;
}

/**
 * Builds the query that counts the missed rows of a listing; undefined for a listing whose records
 * are not named by events. A changed row is missed if it meets three conditions. It changed at the
 * service after the last complete run of the listing began, so that run cannot have read the
 * change. It changed some minutes before this run began, so its event is not just on its way. And
 * the journal has no event with its state or a newer state. A row that an earlier run found gone is
 * missed, too, if some minutes later still no event has deleted it. Usage changes with its
 * document, and is not counted again.
 */
export function missedBy(db: Executor, runId: string, { resource, companyId }: Listing) {
  if (companyId === null || (resource !== 'documents' && resource !== 'connections'))
    return undefined;
  const row = resource === 'documents' ? documents : connections;
  const isOfPart = and(eq(part.companyId, companyId), eq(part.resource, resource));
  const own = db
    .select({ at: min(part.startedAt).as('began_at') })
    .from(part)
    .where(and(eq(part.runId, runId), isOfPart))
    .as('own');
  const before = db
    .select({ at: max(part.startedAt).as('before_at') })
    .from(part)
    .where(and(ne(part.runId, runId), isOfPart, eq(part.state, 'complete')))
    .as('before');
  const reported = db
    .select({})
    .from(journal)
    .where(and(eq(journal.recordId, sql`${row.id}::text`), gte(journal.occurredAt, row.rawUpdated)))
    .offset(literal(0));
  const grace = sql`make_interval(secs => ${attemptPolicy.eventOnItsWaySeconds})`;
  const isChanged = and(
    sql`${row.syncedAt} >= ${own.at}`,
    sql`${row.rawUpdated} >= ${before.at}`,
    sql`${row.rawUpdated} < ${own.at} - ${grace}`,
    notExists(reported),
  );
  const isGone = and(
    inArray(row.deletedReason, ['absent', 'listed']),
    sql`${row.deletedAt} >= ${before.at} - ${grace}`,
    sql`${row.deletedAt} < ${own.at} - ${grace}`,
  );
  return db
    .select({ rows: count() })
    .from(sql`${row}`)
    .crossJoin(own)
    .crossJoin(before)
    .where(
      and(
        eq(row.companyId, companyId),
        isNotNull(before.at),
        sql`case when ${row.deletedAt} is null then ${isChanged} else ${isGone} end`,
      ),
    );
}
