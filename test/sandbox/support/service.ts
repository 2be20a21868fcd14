import { inject } from 'vitest';
import { type Sandbox, type SandboxOptions, startSandbox } from '../../../sandbox/sandbox.ts';
import { createDatabase } from '../../support/database.ts';
import { until } from '../../support/poll.ts';

export interface Answer<T> {
  readonly status: number;
  readonly body: T;
  readonly text: string;
  readonly headers: Headers;
}

export interface Envelope<T> {
  readonly perPage: number;
  readonly totalPages: number;
  readonly currentPage: number;
  readonly hasNext: boolean;
  readonly hasPrevious: boolean;
  readonly items: readonly T[];
  readonly total: number;
}

export interface SandboxEvent {
  readonly seq: number;
  readonly id: string;
  readonly type: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into payloads of every shape
  readonly payload: any;
}

/** A sandbox on its own database, with both ways to reach it: the API and the control routes. */
export interface Service {
  readonly sandbox: Sandbox;
  readonly databaseUrl: string;
  readonly errors: Error[];
  /** Calls the API; `path` begins after the version. */
  api<T = Record<string, never>>(path: string, init?: ApiInit): Promise<Answer<T>>;
  /** Calls a control route; throws if it is refused. */
  control<T = Record<string, unknown>>(method: string, path: string, body?: unknown): Promise<T>;
  change(...changes: readonly object[]): Promise<{ changes: { id: string }[]; events: SandboxEvent[] }>;
  /** Lists events written after `seq`. */
  eventsAfter(seq: number): Promise<SandboxEvent[]>;
  enableWebhooks(enabled?: boolean): Promise<void>;
  /** Waits until nothing is left to deliver. */
  quiet(): Promise<void>;
  stop(): Promise<void>;
}

export interface ApiInit {
  readonly version?: string;
  readonly method?: string;
  readonly key?: string | null;
  readonly body?: unknown;
}

export async function startService(options: Partial<SandboxOptions> = {}): Promise<Service> {
  const database = await createDatabase('sandbox', inject('sandboxTemplate'));
  const errors: Error[] = [];
  const sandbox = await startSandbox({
    databaseUrl: database.url,
    companies: 2,
    documents: 6,
    intervalDays: 1,
    log: ({ error }) => {
      if (error) errors.push(error);
    },
    ...options,
  });
  const service = talkTo(sandbox, database.url, errors);
  return {
    ...service,
    async stop() {
      await sandbox.close();
      await database.drop();
    },
  };
}

/** Makes the same calls for a running sandbox. */
export function talkTo(sandbox: Sandbox, databaseUrl: string, errors: Error[] = []): Omit<Service, 'stop'> {
  const send = async <T>(url: string, init: RequestInit): Promise<Answer<T>> => {
    const response = await fetch(url, init);
    const text = await response.text();
    const json = response.headers.get('content-type')?.includes('json') ?? false;
    return {
      status: response.status,
      text,
      body: json ? (JSON.parse(text) as T) : ({} as T),
      headers: response.headers,
    };
  };
  const api: Service['api'] = (path, { version = 'v2.2', method = 'GET', key = sandbox.apiKey, body } = {}) =>
    send(`${sandbox.url}/${version}${path}`, {
      method,
      headers: {
        ...(key === null ? {} : { 'X-API-Key': key }),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
  const control = async <T>(method: string, path: string, body?: unknown): Promise<T> => {
    const answer = await send<T>(sandbox.url + path, {
      method,
      headers: {
        authorization: `Bearer ${sandbox.controlToken}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.status} ${answer.text}`);
    return answer.body;
  };
  return {
    sandbox,
    databaseUrl,
    errors,
    api,
    control,
    change: (...changes) => control('POST', '/sandbox/changes', { changes }),
    eventsAfter: async (seq) =>
      (await control<{ events: SandboxEvent[] }>('GET', `/sandbox/events?after=${seq}&limit=10000`)).events,
    async enableWebhooks(enabled = true) {
      await api('/external/configure_webhook', { method: 'PATCH', body: { enabled } });
    },
    async quiet() {
      await until('the sandbox has nothing left to deliver', async () => {
        const status = await control<{ quiet: boolean }>('GET', '/sandbox/status');
        return status.quiet;
      });
    },
  };
}

const totals: Readonly<Record<string, string>> = {
  documents: 'totalDocuments',
  usageData: 'totalUsageData',
  meters: 'totalMeters',
  connections: 'totalConnections',
  sites: 'totalSites',
  intervals: 'totalIntervals',
};

/** Returns an envelope with plain names for its items and total. */
export function envelope<T = { id: string }>(answer: Answer<unknown>, itemsKey: string): Envelope<T> {
  const body = answer.body as Record<string, unknown>;
  return {
    ...(body as unknown as Envelope<T>),
    items: body[itemsKey] as T[],
    total: body[totals[itemsKey] ?? ''] as number,
  };
}

// biome-ignore lint/suspicious/noExplicitAny: tests look into records of every shape
export type AnyRecord = any;

/** Lists companies, under the newest API version. */
export async function companiesOf(service: Pick<Service, 'api'>): Promise<AnyRecord[]> {
  return (await service.api<AnyRecord[]>('/company')).body;
}

/** Lists the records of a company's first page. */
export async function recordsOf(
  service: Pick<Service, 'api'>,
  resource: string,
  companyId: string,
  itemsKey: string,
  query = '',
): Promise<AnyRecord[]> {
  const answer = await service.api(`/${resource}/company/${companyId}${query}`);
  return envelope<AnyRecord>(answer, itemsKey).items as AnyRecord[];
}

/** Returns a function that numbers the ids and timestamps of texts, because they differ in each run. */
export function numbered(): (text: string) => string {
  const known = new Map<string, string>();
  const numberOf = (kind: string) => (found: string) => {
    const name = known.get(found) ?? `${kind}-${known.size + 1}`;
    known.set(found, name);
    return name;
  };
  return (text) =>
    text
      .replace(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, numberOf('id'))
      .replace(/(?<=(created|updated)":")[\dT:.-]{26}/g, numberOf('time'));
}
