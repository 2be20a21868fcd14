import { taskQueues } from '../../contract/names.ts';
import { workerIsPolling } from '../backfill.ts';
import { connectClient, type TemporalPlace } from '../temporal.ts';
import { type Check, check, ok, warn } from './check.ts';

/** Whether Temporal answers, and whether workers take work from both of its queues. */
export async function checkTemporal(place: TemporalPlace): Promise<Check[]> {
  const checks: Check[] = [];
  const todo = 'Check TEMPORAL_ADDRESS and TEMPORAL_NAMESPACE, and that Temporal runs.';
  const temporal = await check('Temporal', todo, async () => {
    const { client, close } = await connectClient(place);
    try {
      const queues = Object.keys(taskQueues) as (keyof typeof taskQueues)[];
      const polled = await Promise.all(queues.map(async (queue) => await workerIsPolling(client, queue)));
      const idle = queues.filter((_, at) => !polled[at]);
      const verdict =
        idle.length === 0
          ? ok('they take events and backfills')
          : warn(`nobody takes ${idle.join(' and ')}`, 'Run metersync start, or metersync worker.');
      checks.push({ name: 'workers', ...verdict });
      return ok(`answers; namespace ${client.options.namespace}`);
    } finally {
      await close();
    }
  });
  return [temporal, ...checks];
}
