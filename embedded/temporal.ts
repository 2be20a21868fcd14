import { once } from 'node:events';
import { connect } from 'node:net';
import { join } from 'node:path';
import { bounds } from './bounds.ts';
import type { Addresses } from './running.ts';
import { type ServerCommand, temporalFile } from './servers.ts';

/** The embedded Temporal, as its users see it. */
export interface EmbeddedTemporal {
  /** Host and port of its gRPC service. */
  address: string;
  /** Its web page. */
  uiUrl: string;
}

/** How to run the Temporal server on its database file in `dir`. */
export function temporalServer(options: { dir: string; binary: string; port: number; uiPort: number }): {
  server: ServerCommand;
  address: NonNullable<Addresses['temporal']>;
} {
  const { dir, binary, port, uiPort } = options;
  return {
    server: {
      name: 'temporal',
      command: binary,
      args: [
        ...['server', 'start-dev', '--ip', '127.0.0.1', '--port', String(port), '--ui-port', String(uiPort)],
        ...['--db-filename', temporalFile(dir)],
        // Its HTTP port cannot be left out, and would take what a web page of any site posts to it.
        ...['--dynamic-config-value', 'frontend.httpAllowedHosts=[]'],
        // As safe as SQLite's default journal, a commit being on disk when it returns, and 1.5 times as fast.
        ...['--sqlite-pragma', 'journal_mode=WAL', '--sqlite-pragma', 'synchronous=FULL'],
        ...['--log-level', 'warn'],
      ],
      cwd: dir,
      // It would ask its makers whether there is a newer version.
      env: { TEMPORAL_VERSION_CHECK_DISABLED: '1' },
      logFile: join(dir, 'logs', 'temporal.log'),
    },
    address: { address: `127.0.0.1:${port}`, uiUrl: `http://127.0.0.1:${uiPort}` },
  };
}

/** Whether Temporal answers at this address and has made its default namespace. */
export async function temporalAnswers({ address }: NonNullable<Addresses['temporal']>): Promise<boolean> {
  // gRPC waits a second after a refused connection before it tries again, when the server needs 0.2 s to come up.
  if (!(await accepts(address))) return false;
  // Loaded when there is one to ask: who needs no Temporal is ready sooner.
  const { Connection } = await import('@temporalio/client');
  const connection = Connection.lazy({ address, interceptors: [] });
  try {
    await connection.withDeadline(Date.now() + bounds.answerMs, () =>
      connection.workflowService.describeNamespace({ namespace: 'default' }),
    );
    return true;
  } catch {
    return false;
  } finally {
    await connection.close();
  }
}

async function accepts(address: string): Promise<boolean> {
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
