import type { ConnectionOptions } from '@temporalio/client';
import { say } from '../faults/fault.ts';
import { type Rig, startRig } from '../faults/rig.ts';
import { type Cluster, startCluster } from './cluster.ts';
import type { Security } from './configuration.ts';

/** Not the default namespace of the development server, on which nothing may depend. */
export const namespace = 'utility-data';

/** The security of a cluster, and how to connect to it. */
export interface Secured {
  readonly security: Security;
  /** How to connect as a user who may create namespaces. */
  readonly connect: ConnectionOptions;
  /** The variables of the receiver, the worker and the commands. */
  readonly env: Readonly<Record<string, string>>;
}

/** Runs work on a rig whose Temporal is a new cluster, and stops both. */
export async function withRig<T>(
  work: (rig: Rig, cluster: Cluster) => Promise<T>,
  { security, connect = {}, env = {} }: Partial<Secured> = {},
): Promise<T> {
  const cluster = await startCluster(say, security);
  try {
    await cluster.makeNamespace(namespace, connect);
    const temporal = { part: cluster.whole, address: cluster.address, namespace, connect };
    const rig = await startRig({ temporal, env });
    try {
      return await work(rig, cluster);
    } finally {
      await rig.stop();
    }
  } finally {
    await cluster.stop();
  }
}
