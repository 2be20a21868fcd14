import type { ConnectionOptions } from '@temporalio/client';
import { type Fault, say } from '../faults/fault.ts';
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

/** Surrounds a fault with a new cluster as its Temporal. */
export const onCluster =
  ({ security, connect = {}, env = {} }: Partial<Secured> = {}): NonNullable<Fault<Cluster>['around']> =>
  async (work) => {
    const cluster = await startCluster(say, security);
    try {
      await cluster.makeNamespace(namespace, connect);
      const temporal = { part: cluster.whole, address: cluster.address, namespace, connect };
      return await work({ temporal, env }, cluster);
    } finally {
      await cluster.stop();
    }
  };
