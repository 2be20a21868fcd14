import { randomUUID } from 'node:crypto';
import { Client, Connection } from '@temporalio/client';
import { msToTs } from '@temporalio/common/lib/time.js';
import { inject } from 'vitest';
import { retries } from '../../app/temporal/client.ts';
import { until } from './poll.ts';

/** Registers a fresh Temporal namespace and returns its name once workflows can be started in it. */
export async function createNamespace(): Promise<string> {
  const namespace = `test-${randomUUID()}`;
  const connection = await Connection.connect({
    address: inject('temporalAddress'),
    interceptors: [...retries],
  });
  try {
    await connection.workflowService.registerNamespace({
      namespace,
      workflowExecutionRetentionPeriod: msToTs('1 day'),
    });
    const client = new Client({ connection, namespace });
    // The server's parts notice a namespace one after the other. A successful start proves that all have.
    const probe = await until(`workflows can be started in namespace ${namespace}`, () =>
      client.workflow.start('probe', { taskQueue: 'probe', workflowId: 'probe' }),
    );
    await probe.terminate();
  } finally {
    await connection.close();
  }
  return namespace;
}
