import { and, eq, isNull, sql } from 'drizzle-orm';
import { literal } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import type { DueRange } from '../hot/due-ranges.ts';
import { daySeconds, type Granularity, isoTime, type TimeRange } from '../records/time-range.ts';
import { journal } from '../schema/metersync.ts';
import { companies, intervals, meters, usageData } from '../schema/utility.ts';
import { payloadOf } from './items.ts';

/** Where the next piece of a range begins, and its width as a multiple of the usual width. */
export interface RangeProgress {
  readonly from: string;
  readonly width: number;
}

/** Maximum overlap of pieces: a quarter of a year, because an event may claim any granularity. */
const overlapSecondsMax = 93 * daySeconds;

/**
 * Returns the next piece of a range, wide enough for `readings` readings of the reported length,
 * and where the piece after it begins; null after the last. Pieces overlap by the longest reading,
 * because the service may leave out a reading that crosses the bounds of a request.
 */
export async function nextPiece(
  db: Executor,
  { start, end, seconds: length }: DueRange,
  { from, width }: RangeProgress,
  { shortest, longest }: Granularity,
  readings: number,
): Promise<{ piece: TimeRange; next: string | null }> {
  const overlap = Math.min(longest, overlapSecondsMax);
  const seconds = Math.max(shortest * readings, overlap) * width;
  // Most ranges fit in one piece.
  if (from === start && length <= seconds) return { piece: { start, end }, next: null };
  const [begins, ends] = [sql`${from}::timestamptz`, sql`${end}::timestamptz`];
  const isLast = sql`extract(epoch from ${ends} - ${begins})::float8 <= ${seconds}::float8`;
  const cut = sql`${begins} + make_interval(secs => ${seconds})`;
  const first = sql`greatest(${start}::timestamptz, ${begins} - make_interval(secs => ${overlap}))`;
  const [next] = await db
    .select({
      start: isoTime(first),
      end: isoTime(sql`case when ${isLast} then ${ends} else ${cut} end`),
      next: sql<string | null>`${isoTime(sql`case when not ${isLast} then ${cut} end`)}`,
    })
    .from(sql`(select) piece`);
  if (next === undefined) throw new Error('a range without a piece');
  return { piece: { start: next.start, end: next.end }, next: next.next };
}

/**
 * Returns the width of the next piece. A sparse piece doubles it, so that the cost depends on the
 * readings in a range and not on the width that an event claims.
 */
export function nextWidth(width: number, held: number, readings: number): number {
  if (held * 2 <= readings) return width * 2;
  return held > readings ? Math.max(1, width / 2) : width;
}

/** Whether the service has a meter, by its row or else by usage or readings that name it. */
export async function isKnownMeter(db: Executor, meterId: string): Promise<boolean> {
  const [meter] = await db
    .select({ deletedAt: meters.deletedAt })
    .from(meters)
    .where(eq(meters.id, meterId));
  if (meter !== undefined) return meter.deletedAt === null;
  const used = await db
    .select({ id: usageData.id })
    .from(usageData)
    .where(and(eq(usageData.meterId, meterId), isNull(usageData.deletedAt)))
    .limit(1);
  if (used.length > 0) return true;
  const read = await db
    .select({ meterId: intervals.meterId })
    .from(intervals)
    .where(eq(intervals.meterId, meterId))
    .limit(1);
  return read.length > 0;
}

/** Returns a meter's company, from its row (`known`) or an event about its intervals. */
export async function companyOfMeter(
  db: Executor,
  meterId: string,
): Promise<{ companyId: string | null; known: boolean }> {
  const [meter] = await db
    .select({ companyId: meters.companyId })
    .from(meters)
    .where(eq(meters.id, meterId));
  if (meter?.companyId != null) return { companyId: meter.companyId, known: true };
  const company = db
    .select({ id: companies.id })
    .from(companies)
    .where(eq(companies.externalId, sql`said.payload ->> 'companyExternalId'`))
    .offset(literal(0))
    .as('company');
  const [named] = await db
    .select({ companyId: company.id })
    .from(journal)
    .crossJoinLateral(sql`${payloadOf(journal.id)} said`)
    .crossJoinLateral(company)
    .where(and(eq(journal.kind, 'interval'), eq(journal.recordId, meterId)))
    .limit(1);
  return { companyId: named?.companyId ?? null, known: meter !== undefined };
}
