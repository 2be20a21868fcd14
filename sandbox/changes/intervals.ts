import type { ClientBase } from 'pg';
import { intervalsPayload } from '../events.ts';
import { notFound, Problem } from '../problem.ts';
import { fromText, secondsToMicros, toText } from '../time.ts';
import type { ChangeOf } from './schema.ts';
import { type ChangeContext, emit } from './working-set.ts';

type Sync = ChangeOf<'syncIntervals'>;

interface WrittenRow {
  readonly meterId: string;
  readonly companyId: string;
  readonly companyExternalId: string;
  readonly accountNumber: string;
  readonly createdCount: number;
  readonly updatedCount: number;
}

/** Describes the readings of a range after a sync, whichever sync wrote them (service.md 2.6). */
interface PresentRow {
  readonly granularitySeconds: number[];
  readonly usageUnits: string[];
  readonly qualities: string[];
}

type SyncedRow = WrittenRow & PresentRow;

/** How many intervals one change may write. This is enough for ten years of a quarter-hour meter. */
const slotsMax = 400_000;

/**
 * Inserts or updates interval data (service.md 6.2), to before the end of the range, and emits
 * `intervals.synced` if anything was written. Mode `insert` leaves existing readings unchanged, `update`
 * writes only existing readings, and `both` writes all. Returns the companies whose meters were synced.
 */
export async function syncIntervals(
  client: ClientBase,
  context: ChangeContext,
  changes: readonly Sync[],
): Promise<string[]> {
  for (const change of changes) checkRange(change);
  const companyIds: string[] = [];
  // A statement can write a row only once. Changes of the same meter are therefore written one after another,
  // and changes of different meters together.
  for (let waiting = [...changes]; waiting.length > 0; ) {
    const meters = new Set<string>();
    const round = waiting.filter(({ meterId }) => !meters.has(meterId) && meters.add(meterId));
    const chosen = new Set(round);
    waiting = waiting.filter((change) => !chosen.has(change));
    const written = await writeRound(client, context, round);
    const synced = await describeRanges(client, round, written);
    for (const change of round) emitSynced(context, change, synced.get(change.meterId));
    companyIds.push(...synced.values().map((one) => one.companyId));
  }
  return companyIds;
}

function checkRange({ start, end, granularitySeconds }: Sync): void {
  const slots = (fromText(end) - fromText(start)) / secondsToMicros(granularitySeconds);
  if (slots < 1n || slots > BigInt(slotsMax)) {
    throw new Problem(400, `a sync writes 1 to ${slotsMax} intervals, not ${slots}`);
  }
}

function emitSynced({ set }: ChangeContext, change: Sync, synced: SyncedRow | undefined): void {
  if (synced === undefined) throw notFound(`meter ${change.meterId}`);
  if (synced.createdCount + synced.updatedCount === 0) return;
  const { companyId, ...counts } = synced;
  const range = { start: toText(fromText(change.start)), end: toText(fromText(change.end)) };
  emit(set, companyId, 'intervals.synced', intervalsPayload({ ...counts, ...range }));
}

async function writeRound(
  client: ClientBase,
  { now }: ChangeContext,
  round: readonly Sync[],
): Promise<WrittenRow[]> {
  const { rows } = await client.query<WrittenRow>({
    name: 'sync intervals',
    text: `with asked as (
        select m.number, v.* from unnest($1::uuid[], $2::timestamp[], $3::timestamp[], $4::int[], $5::text[],
          $6::text[], $7::text[]) v (meter_id, start_at, end_at, seconds, units, quality, mode)
        join sandbox.meters m on m.id = v.meter_id),
      slots as (
        select a.*, g.at from asked a, generate_series(a.start_at, a.end_at - a.seconds * interval '1 second',
          a.seconds * interval '1 second') g (at)
        where a.mode = 'both' or (a.mode = 'update') = exists (select from sandbox.intervals i
          where i.meter_number = a.number and i.start_at = g.at and i.seconds = a.seconds and i.usage_units = a.units)),
      written as (
        insert into sandbox.intervals as i
          (meter_number, start_at, seconds, usage_units, created, updated, usage, quality)
        select s.number, s.at, s.seconds, s.units, $8, $8,
          (500 + abs(hashtextextended(s.meter_id || s.at::text, 0)) % 40000)::numeric / 1000, s.quality from slots s
        on conflict (meter_number, start_at, seconds, usage_units) do update set
          usage = i.usage + 0.125, quality = excluded.quality,
          updated = greatest(excluded.updated, i.updated + interval '1 microsecond')
        returning i.meter_number, (xmax = 0) as inserted)
      select a.meter_id as "meterId", c.id as "companyId", c.external_id as "companyExternalId",
        m.account_number as "accountNumber", count(*) filter (where w.inserted)::int as "createdCount",
        count(*) filter (where not w.inserted)::int as "updatedCount"
      from asked a join sandbox.meters m on m.number = a.number join sandbox.companies c on c.id = m.company_id
      left join written w on w.meter_number = a.number
      group by a.meter_id, c.id, m.account_number`,
    values: [
      round.map((sync) => sync.meterId),
      round.map((sync) => sync.start),
      round.map((sync) => sync.end),
      round.map((sync) => sync.granularitySeconds),
      round.map((sync) => sync.usageUnits),
      round.map((sync) => sync.quality),
      round.map((sync) => sync.mode),
      toText(now),
    ],
  });
  return rows;
}

async function describeRanges(
  client: ClientBase,
  round: readonly Sync[],
  written: readonly WrittenRow[],
): Promise<Map<string, SyncedRow>> {
  const { rows } = await client.query<PresentRow & { meterId: string }>({
    name: 'describe ranges',
    text: `select v.meter_id as "meterId", array_agg(distinct i.seconds) as "granularitySeconds",
        array_agg(distinct i.usage_units) as "usageUnits", array_agg(distinct i.quality) as qualities
      from unnest($1::uuid[], $2::timestamp[], $3::timestamp[]) v (meter_id, start_at, end_at)
      join sandbox.meters m on m.id = v.meter_id
      join sandbox.intervals i on i.meter_number = m.number and i.start_at >= v.start_at and i.start_at < v.end_at
      group by v.meter_id`,
    values: [
      round.map((sync) => sync.meterId),
      round.map((sync) => sync.start),
      round.map((sync) => sync.end),
    ],
  });
  const present = new Map(rows.map((row) => [row.meterId, row]));
  const nothing = { granularitySeconds: [], usageUnits: [], qualities: [] };
  return new Map(written.map((row) => [row.meterId, { ...nothing, ...present.get(row.meterId), ...row }]));
}
