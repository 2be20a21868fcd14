import type { Client } from '@temporalio/client';
import { workerIsPolling } from '../app/backfill.ts';
import { requireZone } from '../app/prepare.ts';
import { readScheduleHealth } from '../app/schedules.ts';
import { connectClient } from '../app/temporal.ts';
import { inWords, type TemporalPlace } from '../app/temporal-place.ts';
import { runKinds, taskQueues } from '../contract/names.ts';
import type { Away, Health, TemporalHealth } from '../contract/verdict.ts';
import { counted } from '../contract/words.ts';
import type { Database } from '../db/connect.ts';
import { sqlMessage } from '../db/failures.ts';
import { missingMigrations, newerSchema } from '../db/migrate.ts';
import { readHealth } from '../db/read/health.ts';

/** Time-out of each side: a health page or a monitor waits no longer. */
const askWithinMs = 5_000;

/** Reads the health of a deployment. Never rejects: a server that cannot be reached counts as away. */
export async function readDeployment(options: {
  readonly db: Database;
  readonly databaseUrl: string;
  /** Undefined: no Temporal is configured and none runs here. */
  readonly temporal: TemporalPlace | undefined;
  readonly silenceHours: number;
  /** Time zone in which sessions have to read the service's times. */
  readonly timeZone: string;
}): Promise<Health> {
  const [warehouse, temporal] = await Promise.all([readWarehouse(options), readTemporal(options.temporal)]);
  return { warehouse, temporal };
}

async function readWarehouse({
  db,
  databaseUrl,
  silenceHours,
  timeZone,
}: Parameters<typeof readDeployment>[0]): Promise<Health['warehouse']> {
  try {
    const missing = await missingMigrations(db);
    if (missing > 0)
      return {
        away: `the warehouse lacks ${counted(missing, 'migration')}`,
        todo: 'Run metersync migrate first.',
      };
    if (missing < 0) return { away: newerSchema, todo: 'Upgrade this metersync.' };
    const zone = await requireZone({ db }, timeZone).catch((error: Error) => error);
    if (zone !== undefined)
      return { away: zone.message, todo: 'Connect to Postgres itself, not to a pooler.' };
    return await readHealth(db, { silenceHours });
  } catch (error) {
    const { host, pathname } = new URL(databaseUrl);
    return {
      away: `Postgres at ${host}${pathname} (DATABASE_URL) does not answer: ${sqlMessage(error)}`,
      todo: 'Bring Postgres up, or correct DATABASE_URL.',
    };
  }
}

async function readTemporal(place: TemporalPlace | undefined): Promise<TemporalHealth | Away> {
  if (place === undefined)
    return {
      away: 'no Temporal runs here, so no worker does either',
      todo: 'Run metersync start; or set TEMPORAL_ADDRESS to the Temporal of your workers.',
    };
  try {
    const { client, close } = await connectClient(place, askWithinMs);
    try {
      return await client.withDeadline(Date.now() + askWithinMs, () => askTemporal(client));
    } catch (error) {
      throw inWords(error, place);
    } finally {
      await close();
    }
  } catch (error) {
    return {
      away: (error as Error).message,
      todo: 'Bring Temporal up, or correct TEMPORAL_ADDRESS and TEMPORAL_NAMESPACE.',
    };
  }
}

/** Reads which queues no worker polls, and the state of the schedules. */
export async function askTemporal(client: Client): Promise<TemporalHealth> {
  const queues = Object.keys(taskQueues) as (keyof typeof taskQueues)[];
  const [polled, schedules] = await Promise.all([
    Promise.all(queues.map((queue) => workerIsPolling(client, queue))),
    Promise.all(runKinds.map((kind) => readScheduleHealth(client, kind))),
  ]);
  return { idle: queues.filter((_, at) => !polled[at]), schedules };
}
