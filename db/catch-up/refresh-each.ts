import type { Executor } from '../connection/connect.ts';
import { refreshStale } from '../hot/refresh-stale.ts';
import type { StaleRecord } from './stale.ts';

/** Refreshes stale records of several kinds, and locks them in the order that all sessions use. */
export async function refreshEach(db: Executor, records: readonly StaleRecord[]): Promise<void> {
  const byKind = Map.groupBy(records, ({ kind }) => kind);
  for (const [kind, ofKind] of [...byKind].sort(([a], [b]) => (a < b ? -1 : 1))) {
    await refreshStale(
      db,
      kind,
      ofKind.map(({ record_id }) => record_id),
    );
  }
}
