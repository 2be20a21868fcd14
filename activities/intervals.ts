import { Context } from '@temporalio/activity';
import { warehouseNow } from '../db/catch-up.ts';
import { writeIntervals } from '../db/write/intervals.ts';
import { nothingWritten, type PageWritten, sum } from '../db/write/write-page.ts';
import { type IntervalColumns, readIntervals } from '../service/intervals.ts';
import { walkPages } from '../service/walk.ts';
import type { ActivityDependencies } from './dependencies.ts';

/** Readings that are collected from pages before they are written together. */
const readingsTogether = 5_000;

export interface IntervalRange {
  readonly meterId: string;
  /** ISO times; all readings of the meter when absent. */
  readonly start?: string;
  readonly end?: string;
}

/**
 * Reads a range of a meter's intervals and writes it. `cursor` is what the heartbeats carry meanwhile: the range is
 * read again from its start when the activity is.
 */
export async function readRange(
  deps: ActivityDependencies,
  range: IntervalRange,
  lane: 'live' | 'backfill',
  cursor?: unknown,
): Promise<{ written: PageWritten; pages: number; readings: number; total: number | null }> {
  const context = Context.current();
  const params: Record<string, string> = { meterId: range.meterId };
  if (range.start !== undefined) params.start = range.start;
  if (range.end !== undefined) params.end = range.end;
  const walk = walkPages({
    client: deps.service,
    endpoint: 'intervals',
    params,
    lane,
    signal: context.cancellationSignal,
  });
  let written = nothingWritten;
  let readAt = await warehouseNow(deps.warehouse.db);
  let waiting = noReadings();
  let total: number | null = null;
  const flush = async () => {
    written = sum(written, await writeIntervals(deps.warehouse, range.meterId, readAt, waiting));
    waiting = noReadings();
    readAt = await warehouseNow(deps.warehouse.db);
  };
  for await (const page of walk) {
    append(waiting, readIntervals(page.body, page.itemsKey, page.items));
    total = page.total;
    context.heartbeat(cursor);
    if (waiting.startAt.length >= readingsTogether) await flush();
  }
  await flush();
  const { pages, rows } = walk.report();
  return { written, pages, readings: rows, total };
}

function noReadings(): IntervalColumns {
  return {
    startAt: [],
    endAt: [],
    usage: [],
    usageUnits: [],
    quality: [],
    updated: [],
    meterId: [],
    granularitySeconds: [],
    unplaced: [],
  };
}

function append(to: IntervalColumns, more: IntervalColumns): void {
  to.startAt.push(...more.startAt);
  to.endAt.push(...more.endAt);
  to.usage.push(...more.usage);
  to.usageUnits.push(...more.usageUnits);
  to.quality.push(...more.quality);
  to.updated.push(...more.updated);
  to.granularitySeconds.push(...more.granularitySeconds);
}
