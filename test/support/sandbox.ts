import { inject } from 'vitest';
import type { SandboxOptions } from '../../sandbox/options.ts';
import { startSandbox as startService } from '../../sandbox/sandbox.ts';
import { createDatabase } from './database.ts';

export type SandboxSize = Pick<SandboxOptions, 'companies' | 'documents' | 'intervalDays'>;

const smallSize: SandboxSize = { companies: 3, documents: 30, intervalDays: 1 };

/** The service in the test's process, and what its control routes do (docs/guides/sandbox.md). */
export interface TestSandbox {
  readonly url: string;
  readonly apiUrl: string;
  readonly apiKey: string;
  /** URL of its database. */
  readonly databaseUrl: string;
  /** Turns webhooks on and registers an endpoint; returns its signing secret. */
  register(url: string): Promise<string>;
  /** Applies changes in order; returns the ids of the changed records. */
  change(...changes: readonly object[]): Promise<string[]>;
  /** Makes this many random valid changes; returns the number of their events. */
  random(count: number, seed: number, types?: readonly string[]): Promise<number>;
  /** Calls a control route, by its path below /sandbox (docs/guides/sandbox.md). */
  control<T>(method: string, path: string, body?: unknown): Promise<T>;
  disturb(how: object): Promise<void>;
  /** Moves the service's clock on, so that redeliveries become due. */
  advance(seconds: number): Promise<void>;
  fault(fault: object): Promise<void>;
  clearFaults(): Promise<void>;
  status(): Promise<SandboxStatus>;
  /** Lists the ids of events that were answered with 2xx. */
  delivered(): Promise<string[]>;
  events(): Promise<{ id: string; type: string; payload: Record<string, unknown> }[]>;
  /** Reads the API, by a path below the version. */
  read<T>(path: string): Promise<T>;
  stop(): Promise<void>;
}

export interface SandboxStatus {
  readonly quiet: boolean;
  readonly companies: number;
  readonly documents: number;
  readonly events: { readonly total: number };
  readonly deliveries: Readonly<
    Record<'waiting' | 'inFlight' | 'delivered' | 'failed' | 'dropped' | 'duplicates', number>
  >;
}

/** Starts a sandbox on a database of its own; `stop` removes both. */
export async function startSandbox(
  size: SandboxSize = {},
  more: Omit<SandboxOptions, 'databaseUrl' | 'log'> = {},
): Promise<TestSandbox> {
  const database = await createDatabase('sandbox', inject('sandboxTemplate'));
  // Not that of a command that runs in this process.
  const { stderr } = process;
  const service = await startService({
    databaseUrl: database.url,
    ...smallSize,
    ...size,
    ...more,
    log: ({ error }) => void (error && stderr.write(`sandbox: ${error.stack}\n`)),
  });
  const call = async <T>(method: string, url: string, body?: unknown): Promise<T> => {
    const response = await fetch(url, {
      method,
      headers: {
        'x-api-key': service.apiKey,
        authorization: `Bearer ${service.controlToken}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${url}: ${response.status} ${text.slice(0, 500)}`);
    return (text === '' ? undefined : JSON.parse(text)) as T;
  };
  const control = <T>(method: string, path: string, body?: unknown): Promise<T> =>
    call(method, `${service.url}/sandbox/${path}`, body);

  const { url, apiUrl, apiKey } = service;
  return {
    ...{ url, apiUrl, apiKey },
    databaseUrl: database.url,
    register: async (url) => {
      await call('PATCH', `${service.apiUrl}/external/configure_webhook`, { enabled: true });
      return (await control<{ secret: string }>('POST', 'endpoints', { url })).secret;
    },
    change: async (...changes) => {
      const applied = await control<{ changes: { id: string }[] }>('POST', 'changes', { changes });
      return applied.changes.map(({ id }) => id);
    },
    random: async (count, seed, types) => {
      const asked = { count, seed, ...(types === undefined ? {} : { types }) };
      return (await control<{ events: number }>('POST', 'random', asked)).events;
    },
    control,
    disturb: (how) => control('POST', 'disturb', how),
    advance: (seconds) => control('POST', 'clock', { advanceSeconds: seconds }),
    fault: (fault) => control('POST', 'faults', fault),
    clearFaults: () => control('DELETE', 'faults'),
    status: () => control('GET', 'status'),
    delivered: async () => {
      const listed = await control<{ deliveries: { eventId: string }[] }>(
        'GET',
        'deliveries?state=delivered&limit=10000',
      );
      return listed.deliveries.map(({ eventId }) => eventId);
    },
    events: async () =>
      (await control<{ events: Awaited<ReturnType<TestSandbox['events']>> }>('GET', 'events?limit=10000'))
        .events,
    read: (path) => call('GET', `${service.apiUrl}${path}`),
    stop: async () => {
      await service.close();
      await database.drop();
    },
  };
}
