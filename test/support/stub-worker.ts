import { Client, Connection } from '@temporalio/client';
import { NativeConnection, Worker } from '@temporalio/worker';
import { pino } from 'pino';
import { inject } from 'vitest';
import { workflowBundle } from '../../app/temporal/workflow-bundle.ts';
import { createNamespace } from './namespace.ts';
import { installOnce } from './run-part.ts';

/** Creates a namespace. Returns a client, and the options of a worker that runs our workflows there. */
export async function openNamespace() {
  installOnce();
  const address = inject('temporalAddress');
  const [namespace, native, connection] = await Promise.all([
    createNamespace(),
    NativeConnection.connect({ address }),
    Connection.connect({ address }),
  ]);
  return {
    client: new Client({ connection, namespace }),
    ofWorker: {
      connection: native,
      namespace,
      workflowBundle: await workflowBundle(pino({ level: 'silent' })),
    },
    close: async () => void (await Promise.all([native.close(), connection.close()])),
  };
}

/** Does work in a new namespace, while a worker runs our workflows of a queue with the given activities. */
export async function withStubs<T>(
  taskQueue: string,
  activities: object,
  work: (client: Client) => Promise<T>,
): Promise<T> {
  const { client, ofWorker, close } = await openNamespace();
  const worker = await Worker.create({ ...ofWorker, taskQueue, activities });
  try {
    return await worker.runUntil(work(client));
  } finally {
    await close();
  }
}
