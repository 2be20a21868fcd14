import { randomUUID } from 'node:crypto';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type pg from 'pg';
import { from as copyFrom } from 'pg-copy-streams';
import { connectWarehouse, type Warehouse } from '../../db/connection/connect.ts';
import { pageOf, readyReadings } from '../../db/readings/pages.ts';
import { replaceReadings } from '../../db/readings/replace.ts';
import type { IntervalColumns } from '../../db/readings/texts.ts';
import { type Bench, type Figures, type Measure, median, secondsOf } from '../measure.ts';
import { withClient } from '../stack.ts';
import { bytesOnDisk } from '../warehouse.ts';
import { createRandom } from '../world.ts';

const before = '2026-06-01T00:00:00.000000';
const now = '2026-06-02T00:00:00.000000';
const minutesAgo = (minutes: number): string => new Date(Date.now() - minutes * 60_000).toISOString();
const readAt = minutesAgo(1);

export const intervals: Measure = {
  name: 'intervals',
  about:
    'readings per second into the partitioned table, fresh and overlapping ranges, against COPY into a bare heap',
  run: measureIntervals,
};

async function measureIntervals(bench: Bench): Promise<Figures> {
  const { size } = bench;
  const url = await bench.stack.warehouse();
  const warehouse = connectWarehouse({ url, timeZone: 'UTC', max: 4, onError: () => {} });
  bench.atEnd(() => warehouse.close());
  const perCall = size.intervalReadings;
  bench.say(
    `${size.intervalMeters} meters, ${size.intervalCalls} calls of ${perCall.toLocaleString('en')} readings each; COPY begins with the same columns and commits as often`,
  );
  return await withClient(url, async (client) => {
    await client.query(`create table public.heap (meter_id text, start_at timestamptz, granularity_seconds int,
      usage_units text, usage numeric, quality text, updated timestamptz, synced_at timestamptz)`);
    const seconds = { copy: [] as number[], fresh: [] as number[], overlap: [] as number[] };
    // The first meter warms up connections and code, and makes the partitions of the months.
    for (let meter = 0; meter <= size.intervalMeters; meter++) {
      for (let call = 0; call < size.intervalCalls; call++) {
        const columns = readings(meter, call * perCall, perCall, now);
        const copy = await secondsOf(() => copyToHeap(client, `meter ${meter}`, columns));
        const fresh = await secondsOf(() => writeFresh(warehouse, `fresh ${meter}`, columns));
        const overlap = await writeOverlapping(warehouse, `overlap ${meter}`, columns);
        if (meter === 0) continue;
        seconds.copy.push(copy);
        seconds.fresh.push(fresh);
        seconds.overlap.push(overlap);
      }
    }
    // The median of many calls, so that calls which were disturbed do not count.
    const [copy, fresh, overlap] = [median(seconds.copy), median(seconds.fresh), median(seconds.overlap)];
    const rows = await client.query<{ count: string }>('select count(*) from utility.intervals');
    return {
      freshOfCopy: copy / fresh,
      overlapOfCopy: copy / overlap,
      freshPerSecond: perCall / fresh,
      overlapPerSecond: perCall / overlap,
      copyPerSecond: perCall / copy,
      bytesOnDiskPerReading: (await bytesOnDisk(client, 'utility.intervals')) / Number(rows.rows[0]?.count),
    };
  });
}

async function copyToHeap(client: pg.Client, meterId: string, columns: IntervalColumns): Promise<void> {
  const lines = columns.startAt.map(
    (start, n) =>
      `${meterId}\t${start}\t900\t${columns.usageUnits[n]}\t${columns.usage[n]}\t${columns.quality[n]}\t${columns.updated[n]}\t${readAt}\n`,
  );
  await pipeline(Readable.from([lines.join('')]), client.query(copyFrom('copy public.heap from stdin')));
}

/** Replaces the readings of a range by a page, as a read of one page does. */
async function replace(warehouse: Warehouse, meterId: string, readAt: string, columns: IntervalColumns) {
  const { readings } = await readyReadings(warehouse, columns);
  const page = pageOf(readings);
  if (page === undefined) throw new Error('no readings');
  const replaced = await replaceReadings(warehouse, {
    meterId,
    range: { start: page.first, end: columns.endAt.at(-1) ?? undefined },
    readAt,
    runId: randomUUID(),
    cap: null,
    pages: [page],
    proof: 'proved',
  });
  if (replaced === undefined) throw new Error('nothing was replaced');
  return replaced;
}

async function writeFresh(warehouse: Warehouse, meterId: string, columns: IntervalColumns): Promise<void> {
  const { inserted } = await replace(warehouse, meterId, readAt, columns);
  if (inserted !== columns.startAt.length) throw new Error(`${inserted} of the fresh readings were written`);
}

/** Returns the seconds to write over the rows of an earlier sync, whose own writing is not counted. */
async function writeOverlapping(
  warehouse: Warehouse,
  meterId: string,
  columns: IntervalColumns,
): Promise<number> {
  const there = earlier(columns, before);
  await replace(warehouse, meterId, minutesAgo(60), there);
  return await secondsOf(async () => {
    const { inserted, changed } = await replace(warehouse, meterId, readAt, columns);
    const fresh = columns.startAt.length - there.startAt.length;
    if (inserted !== fresh || changed !== there.changed) {
      throw new Error(`${inserted} readings inserted, ${changed} changed, not ${fresh} and ${there.changed}`);
    }
  });
}

const quarterHourMs = 15 * 60 * 1000;
const firstReading = Date.UTC(2025, 0, 1);

/** Makes quarter-hour readings from number `from` on, as columns of texts as the service sends them. */
export function readings(seed: number, from: number, count: number, updated: string): IntervalColumns {
  const random = createRandom(seed + from);
  const at = (place: number) =>
    `${new Date(firstReading + place * quarterHourMs).toISOString().slice(0, -1)}000`;
  const column = <T>(value: (place: number) => T): T[] =>
    Array.from({ length: count }, (_, n) => value(from + n));
  return {
    startAt: column(at),
    endAt: column((place) => at(place + 1)),
    granularitySeconds: column(() => null),
    usage: column(() => `${random.int(0, 99)}.${random.int(100, 999)}`),
    usageUnits: column(() => 'kWh'),
    quality: column(() => 'ACTUAL'),
    updated: column(() => updated),
    id: column(() => null),
  };
}

/**
 * Makes the readings that an earlier sync left: the first three fifths, of which a sixth have another value.
 * So half of the range is identical, a tenth has changed, and two fifths are new.
 */
export function earlier(
  columns: IntervalColumns,
  updated: string,
): IntervalColumns & { readonly changed: number } {
  const count = Math.floor((columns.startAt.length * 3) / 5);
  const changed = (place: number) => place % 6 === 0;
  const cut = <T>(values: readonly T[]): T[] => values.slice(0, count);
  return {
    startAt: cut(columns.startAt),
    endAt: cut(columns.endAt),
    granularitySeconds: cut(columns.granularitySeconds),
    usage: cut(columns.usage).map((usage, place) => (changed(place) ? `1${usage}` : usage)),
    usageUnits: cut(columns.usageUnits),
    quality: cut(columns.quality),
    updated: cut(columns.updated).map((now, place) => (changed(place) ? updated : now)),
    id: cut(columns.id),
    changed: Math.ceil(count / 6),
  };
}
