import { once } from 'node:events';
import { connect } from 'node:net';
import { join } from 'node:path';
import type { Addresses } from './running.ts';
import type { ServerCommand } from './servers.ts';

export interface EmbeddedTemporal {
  address: string;
  uiUrl?: string;
}

/**
 * Returns how to run the Temporal server on its database in `dir`, and its address. Its web page needs a
 * `uiPort`: it answers for any `Host`, so another site could end workflows there through DNS rebinding.
 */
export function temporalServer(options: { dir: string; binary: string; port: number; uiPort?: number }): {
  server: ServerCommand;
  address: NonNullable<Addresses['temporal']>;
} {
  const { dir, binary, port, uiPort } = options;
  return {
    server: {
      name: 'temporal',
      command: binary,
      args: [
        'server',
        'start-dev',
        '--ip=127.0.0.1',
        `--port=${port}`,
        uiPort === undefined ? '--headless' : `--ui-port=${uiPort}`,
        // A name without folders, whose `?`, `#` or `%41` SQLite would read as part of an address.
        '--db-filename',
        databaseName,
        // The HTTP port cannot be switched off, and would accept posts from web pages of any site.
        '--dynamic-config-value=frontend.httpAllowedHosts=[]',
        // Partitions spread a queue over servers. A single server would pass tasks between its own
        // partitions, ten times a second for each task that no worker takes.
        '--dynamic-config-value=matching.numTaskqueueReadPartitions=1',
        '--dynamic-config-value=matching.numTaskqueueWritePartitions=1',
        // As safe as SQLite's default journal (a commit is on disk when it returns), and 1.5 times as fast.
        '--sqlite-pragma=journal_mode=WAL',
        '--sqlite-pragma=synchronous=FULL',
        '--log-level=warn',
      ],
      cwd: dir,
      // Keeps Temporal from asking its maker for a newer version.
      env: { TEMPORAL_VERSION_CHECK_DISABLED: '1' },
      logFile: join(dir, 'logs', 'temporal.log'),
    },
    address: {
      address: `127.0.0.1:${port}`,
      ...(uiPort === undefined ? {} : { uiUrl: `http://127.0.0.1:${uiPort}` }),
    },
  };
}

const databaseName = 'temporal.db';

export function temporalFile(dir: string): string {
  return join(dir, databaseName);
}

/** Whether Temporal answers at this address and has made its default namespace. */
export async function temporalAnswers({ address }: NonNullable<Addresses['temporal']>): Promise<boolean> {
  // After a refused connection gRPC waits a second, but the server needs only 0.2 s to start.
  if (!(await accepts(address))) return false;
  // Loaded on demand, so that a stack without Temporal is ready sooner.
  const { Connection } = await import('@temporalio/client');
  // gRPC would use the proxy of `https_proxy` even for this machine.
  const channelArgs = { 'grpc.enable_http_proxy': 0 };
  const connection = Connection.lazy({ address, channelArgs, interceptors: [] });
  try {
    await connection.withDeadline(Date.now() + 2_000, () =>
      connection.workflowService.describeNamespace({ namespace: 'default' }),
    );
    return true;
  } catch {
    return false;
  } finally {
    await connection.close();
  }
}

export async function accepts(address: string): Promise<boolean> {
  const { hostname, port } = new URL(`tcp://${address}`);
  const socket = connect({ host: hostname, port: Number(port) });
  try {
    await once(socket, 'connect');
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}
