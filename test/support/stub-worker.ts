import { Client, Connection } from '@temporalio/client';
import { NativeConnection, Worker } from '@temporalio/worker';
import { pino } from 'pino';
import { inject } from 'vitest';
import { workflowBundle } from '../../app/workflow-bundle.ts';
import { createNamespace } from './namespace.ts';
import { installOnce } from './run-part.ts';

/** Does work in a namespace of its own, while a worker runs our workflows of a queue on the given activities. */
export async function withStubs<T>(
  taskQueue: string,
  activities: object,
  work: (client: Client) => Promise<T>,
): Promise<T> {
  installOnce();
  const address = inject('temporalAddress');
  const [namespace, native, connection] = await Promise.all([
    createNamespace(),
    NativeConnection.connect({ address }),
    Connection.connect({ address }),
  ]);
  const bundle = await workflowBundle(pino({ level: 'silent' }));
  const worker = await Worker.create({
    connection: native,
    namespace,
    taskQueue,
    workflowBundle: bundle,
    activities,
  });
  try {
    return await worker.runUntil(work(new Client({ connection, namespace })));
  } finally {
    await Promise.all([native.close(), connection.close()]);
  }
}
