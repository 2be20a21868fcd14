import {
  and,
  count,
  desc,
  eq,
  exists,
  gt,
  isNotNull,
  isNull,
  not,
  type SQL,
  sql,
} from 'drizzle-orm';
import { alias } from 'drizzle-orm/pg-core';
import { companyResources } from '../../contract/endpoints.ts';
import { type FailureCode, parkingCodes } from '../../contract/failures.ts';
import type { ParkedWork, WaitingEvents } from '../../health/measured.ts';
import { livesCompany } from '../backfill/failed-parts.ts';
import { isAmong, literal } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { isShared } from '../events/gates.ts';
import { gates, runs } from '../schema/metersync.ts';

/**
 * Reads parked work by failure, longest parked first: waiting events with a parking failure, the closed
 * gates of the service and of endpoints, and parts of backfills among the latest `most` failed parts.
 */
export async function readParked(
  db: Executor,
  waiting: readonly WaitingEvents[],
  most: number,
): Promise<ParkedWork[]> {
  const { code, message: reason, since, nextProbeAt } = gates;
  const none = { events: 0, owners: 0, parts: 0 };
  const service = await db
    .select({ code: sql<FailureCode>`${code}`, reason, since, nextAttemptAt: nextProbeAt })
    .from(gates)
    .where(isShared);
  const parts = await parkedParts(db, most);
  const refused: ParkedWork[] = [
    ...waiting
      .filter((events) => parkingCodes.includes(events.code))
      .map((events) => ({ ...none, ...events })),
    ...service.map((state) => ({ ...none, ...state })),
    ...parts.map((failed) => ({ ...none, ...failed, nextAttemptAt: null })),
  ];
  return [...Map.groupBy(refused, (work) => work.code).values()]
    .map((works) => works.reduce(together))
    .sort((a, b) => (a.since < b.since ? -1 : 1));
}

/** Adds up work that is parked for the same failure. */
const together = (a: ParkedWork, b: ParkedWork): ParkedWork => ({
  code: a.code,
  reason: a.reason < b.reason ? a.reason : b.reason,
  events: a.events + b.events,
  owners: a.owners + b.owners,
  parts: a.parts + b.parts,
  since: a.since < b.since ? a.since : b.since,
  nextAttemptAt:
    (a.nextAttemptAt ?? '') > (b.nextAttemptAt ?? '') ? a.nextAttemptAt : b.nextAttemptAt,
});

/**
 * Counts parts of backfills that ended with a parking failure, among the latest `most` failed
 * parts, except parts that a later run has ended and parts of tombstoned companies.
 */
async function parkedParts(db: Executor, most: number) {
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
  return await db
    .select({
      code: sql<FailureCode>`${failed.errorCode}`,
      reason: sql<string>`min(${failed.error})`,
      parts: count(),
      since: sql<string>`min(${failed.startedAt})`,
    })
    .from(failed)
    .where(
      and(
        isAmong(failed.errorCode, parkingCodes),
        sql`case when ${isNull(failed.companyId)} then ${ofList} else ${ofCompany} end`,
      ),
    )
    .groupBy(failed.errorCode);
}
