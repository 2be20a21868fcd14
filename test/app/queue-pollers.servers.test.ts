import { expect, test } from 'vitest';
import { workerIsPolling } from '../../app/queue-pollers.ts';
import { taskQueues } from '../../contract/names.ts';
import { until } from '../support/poll.ts';
import { withStubs } from '../support/stub-worker.ts';

test('a worker counts as there while its slots for activities are in use, and it polls for workflows alone', async () => {
  await withStubs(taskQueues.backfill, {}, async (client) => {
    await until('it polls', () => workerIsPolling(client, 'backfill'));
    expect(await workerIsPolling(client, 'checks')).toBe(false);
  });
  const look = { look: async () => {} };
  await withStubs(taskQueues.watch, look, async (client) => {
    await until('it polls for looks', () => workerIsPolling(client, 'watch'));
    // The slot for checks may be in use.
    expect(await workerIsPolling(client, 'checks')).toBe(true);
    expect(await workerIsPolling(client, 'events')).toBe(false);
  });
});
