import type { Client } from '@temporalio/client';
import { workerIsPolling } from '../app/temporal/queue-pollers.ts';
import type { taskQueues } from '../contract/names.ts';
import { Refused } from './recorded.ts';

/** @throws Refused when no worker polls a queue: the requested work would wait forever */
export async function requireWorker(client: Client, queue: keyof typeof taskQueues): Promise<void> {
  if (await workerIsPolling(client, queue)) return;
  throw new Refused('no worker is running: run metersync start (or metersync worker) first');
}
