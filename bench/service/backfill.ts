import type { Client } from '@temporalio/client';
import { startBackfill } from '../../app/backfill.ts';
import type { TemporalPlace } from '../../app/temporal/place.ts';
import { connectClient } from '../../app/temporal/temporal.ts';
import { type RunState, workflowIds } from '../../contract/names.ts';
import { connectWarehouse } from '../../db/connection/connect.ts';
import type { Pipeline } from '../pipeline/start.ts';

/** Runs work with a client of a namespace, and closes the client. */
export async function withTemporal<T>(
  place: TemporalPlace,
  work: (client: Client) => Promise<T>,
): Promise<T> {
  const { client, close } = await connectClient(place);
  try {
    return await work(client);
  } finally {
    await close();
  }
}

/**
 * Backfills the given companies, or all, through the real workflows, and returns the seconds. It also waits
 * for the following checks of the data, which would disturb the next measurement.
 * @throws Error if the run did not end as complete
 */
export async function runBackfill(
  { temporal, databaseUrl }: Pick<Pipeline, 'temporal' | 'databaseUrl'>,
  companies?: readonly string[],
): Promise<number> {
  const warehouse = connectWarehouse({ url: databaseUrl, timeZone: 'UTC', max: 1, onError: () => {} });
  try {
    return await withTemporal(temporal, async (client) => {
      const began = performance.now();
      const runId = await startBackfill(client, companies && { db: warehouse.db, companies });
      const state = (await client.workflow.getHandle(workflowIds.backfillAll(runId)).result()) as RunState;
      if (state !== 'complete') throw new Error(`the backfill ended ${state}`);
      const seconds = (performance.now() - began) / 1000;
      await client.workflow.getHandle(workflowIds.checkData(runId)).result();
      return seconds;
    });
  } finally {
    await warehouse.close();
  }
}
