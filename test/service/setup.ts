import { onTestFinished } from 'vitest';
import { defaultEndpoints } from '../../contract/endpoints.ts';
import { createServiceClient, type ServiceClient, type ServiceClientOptions } from '../../service/client.ts';
import type { RequestFigures } from '../../service/request.ts';
import { type Script, ScriptedServer } from './scripted-server.ts';
import { VirtualClock } from './virtual-clock.ts';

export const apiKey = 'key-3f9a-secret-b71c';

/** Longer than any wait between attempts, so that a clock that skips waits never skips the deadline. */
export const timeoutMs = 100_000_000;

export interface Logged {
  readonly level: 'debug' | 'warn';
  readonly fields: object;
  readonly message: string;
}

export interface Setup {
  readonly server: ScriptedServer;
  readonly client: ServiceClient;
  readonly clock: VirtualClock;
  readonly logged: Logged[];
  /** Attempts that ended, in their order. */
  readonly ended: RequestFigures[];
}

/** Starts a client and its server, and closes both after the test. Jitter is half of its maximum. */
export async function setup(script: Script, options: Partial<ServiceClientOptions> = {}): Promise<Setup> {
  const server = await ScriptedServer.start(script);
  const clock = new VirtualClock({ skipBelowMs: timeoutMs });
  const logged: Logged[] = [];
  const ended: RequestFigures[] = [];
  const client = createServiceClient({
    baseUrl: server.url,
    apiKey,
    endpoints: defaultEndpoints,
    timeoutMs,
    clock,
    random: () => 0.5,
    log: {
      debug: (fields, message) => void logged.push({ level: 'debug', fields, message }),
      warn: (fields, message) => void logged.push({ level: 'warn', fields, message }),
    },
    onRequest: (figures) => void ended.push(figures),
    ...options,
  });
  onTestFinished(async () => {
    await client.close();
    await server.stop();
  });
  return { server, client, clock, logged, ended };
}

/** A request for one page of a company's documents. */
export const documents = (page = 1) =>
  ({ endpoint: 'documents', params: { companyId: 'c1' }, page, lane: 'backfill' }) as const;

/** Returns the error with which the promise rejects. */
export async function rejection(promise: Promise<unknown>): Promise<unknown> {
  return await promise.then(
    (value) => {
      throw new Error(`Expected a rejection, got ${JSON.stringify(value)}`);
    },
    (error: unknown) => error,
  );
}
