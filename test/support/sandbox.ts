import type { SandboxOptions } from '../../sandbox/parts.ts';
import { startService } from '../sandbox/support/service.ts';

export type SandboxSize = Pick<SandboxOptions, 'companies' | 'documents' | 'intervalDays'>;

const smallSize: SandboxSize = { companies: 3, documents: 30, intervalDays: 1 };

/** The service in the test's process, with methods for its control routes (docs/reference/sandbox.md). */
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
  /** Calls a control route, by its path below /sandbox (docs/reference/sandbox.md). */
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

/** Starts a sandbox on its own database; `stop` removes both. */
export async function startSandbox(
  size: SandboxSize = {},
  more: Omit<SandboxOptions, 'databaseUrl' | 'log'> = {},
): Promise<TestSandbox> {
  // The standard error of the test, even while a command that runs in this process replaces it.
  const { stderr } = process;
  const service = await startService({
    ...smallSize,
    ...size,
    ...more,
    log: ({ error }) => void (error && stderr.write(`sandbox: ${error.stack}\n`)),
  });
  const control = <T>(method: string, path: string, body?: unknown): Promise<T> =>
    service.control(method, `/sandbox/${path}`, body);

  const { url, apiUrl, apiKey } = service.sandbox;
  return {
    ...{ url, apiUrl, apiKey },
    databaseUrl: service.databaseUrl,
    register: async (url) => {
      await service.enableWebhooks();
      return (await control<{ secret: string }>('POST', 'endpoints', { url })).secret;
    },
    change: async (...changes) => (await service.change(...changes)).changes.map(({ id }) => id),
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
    events: () => service.eventsAfter(0),
    read: async <T>(path: string) => {
      const { status, text, body } = await service.api<T>(path);
      if (status !== 200) throw new Error(`${path}: ${status} ${text.slice(0, 500)}`);
      return body;
    },
    stop: service.stop,
  };
}
