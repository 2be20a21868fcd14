import {
  and,
  count,
  desc,
  eq,
  exists,
  gt,
  isNotNull,
  isNull,
  min,
  not,
  type SQL,
  sql,
} from 'drizzle-orm';
import { alias, unionAll } from 'drizzle-orm/pg-core';
import { companyResources } from '../../contract/endpoints.ts';
import { parkingCodes } from '../../contract/failures.ts';
import type { ParkedWork } from '../../health/measured.ts';
import { livesCompany, stillParked } from '../catch-up/parking.ts';
import { isAmong, literal } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { parked, runs } from '../schema/metersync.ts';
import { cut } from './counted.ts';
import { eventsThatFailed, heldUp } from './waiting.ts';

const none = sql`0`;

/**
 * Reads work that the service refused, by failure, longest parked first. Of each failure `most`
 * records and parts are counted.
 */
export async function readParked(db: Executor, most: number): Promise<ParkedWork[]> {
  const { code, message: reason, since, nextAttemptAt } = parked;
  const service = db
    .select(heldUp({ code, reason, events: none, owners: none, parts: none, since, nextAttemptAt }))
    .from(parked)
    .where(stillParked);
  const events = eventsThatFailed(db, parkingCodes, most);
  const refused = unionAll(events, service, parkedParts(db, most)).as('refused');
  return await db
    .select({
      code: refused.code,
      reason: sql<string>`min(${refused.reason})`,
      events: cut(sql`sum(${refused.events})`, most),
      owners: sql<number>`sum(${refused.owners})::int`,
      parts: sql<number>`sum(${refused.parts})::int`,
      since: sql<string>`min(${refused.since})`,
      nextAttemptAt: sql<string | null>`max(${refused.nextAttemptAt})`,
    })
    .from(refused)
    .groupBy(refused.code)
    .orderBy(sql`min(${refused.since})`);
}

/**
 * Parts of backfills that failed for a parking failure and that no later run read to any end, among the latest
 * that failed. A tombstoned company's failures need no retry.
 */
function parkedParts(db: Executor, most: number) {
  const failed = db
    .select()
    .from(runs)
    .where(and(isNotNull(runs.resource), sql`${runs.state} in ('failed', 'partial')`))
    .orderBy(desc(runs.finishedAt))
    .limit(most)
    .as('failed');
  const later = alias(runs, 'later');
  const readSince = (isOfPart: SQL) =>
    exists(
      db
        .select({ one: sql`1` })
        .from(later)
        .where(
          and(
            isOfPart,
            eq(later.resource, failed.resource),
            gt(later.finishedAt, failed.finishedAt),
          ),
        )
        .offset(literal(0)),
    );
  const ofList = and(eq(failed.resource, 'companies'), not(readSince(isNull(later.companyId))));
  const ofCompany = and(
    isAmong(failed.resource, companyResources),
    livesCompany(sql`${failed.companyId}`),
    not(readSince(eq(later.companyId, failed.companyId))),
  );
  return db
    .select(
      heldUp({
        code: failed.errorCode,
        reason: min(failed.error),
        events: none,
        owners: none,
        parts: count(),
        since: min(failed.startedAt),
        nextAttemptAt: sql`null::timestamptz`,
      }),
    )
    .from(failed)
    .where(
      and(
        isAmong(failed.errorCode, parkingCodes),
        sql`case when ${isNull(failed.companyId)} then ${ofList} else ${ofCompany} end`,
      ),
    )
    .groupBy(failed.errorCode);
}
