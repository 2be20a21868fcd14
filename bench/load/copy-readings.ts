import { pipeline } from 'node:stream/promises';
import { from as copyFrom, to as copyTo } from 'pg-copy-streams';
import { withClient } from '../stack.ts';

/** Copies a sandbox's readings into a warehouse, as a backfill would, but fast. Returns their number. */
export async function copyReadings(sandboxUrl: string, warehouseUrl: string): Promise<number> {
  return await withClient(sandboxUrl, (sandbox) =>
    withClient(warehouseUrl, async (warehouse) => {
      const { rows } = await sandbox.query(
        'select min(start_at)::text as first, max(start_at)::text as last, count(*)::int as count from sandbox.intervals',
      );
      const [{ first, last, count }] = rows;
      await warehouse.query(
        `select metersync.ensure_interval_month(month)
          from generate_series(date_trunc('month', $1::timestamptz, 'UTC'), $2::timestamptz, '1 month', 'UTC') month`,
        [`${first}Z`, `${last}Z`],
      );
      await pipeline(
        sandbox.query(
          copyTo(`copy (
            select m.id::text, i.start_at at time zone 'UTC', i.seconds, i.usage_units, i.usage, i.quality,
              i.updated at time zone 'UTC', now()
            from sandbox.intervals i join sandbox.meters m on m.number = i.meter_number
          ) to stdout (format binary)`),
        ),
        warehouse.query(
          copyFrom(`copy utility.intervals (meter_id, start_at, granularity_seconds, usage_units, usage, quality,
            updated, synced_at) from stdin (format binary)`),
        ),
      );
      await warehouse.query('vacuum analyze');
      return count as number;
    }),
  );
}
