import { ask } from '../../http/ask.ts';

/** The control routes that the commands use (docs/guides/sandbox.md). */
export interface SandboxControl {
  /** Registers a webhook endpoint, removes all earlier endpoints, and returns the signing secret. */
  registerEndpoint(url: string): Promise<string>;
  disturb(how: { duplicate?: number; shuffle?: boolean; delayMs?: [number, number] }): Promise<void>;
  /** Makes the sandbox do this many random changes a minute, until it is set to 0. */
  live(perMinute: number): Promise<void>;
  randomChanges(count: number, seed: number): Promise<{ changes: number; events: number }>;
  status(): Promise<{ quiet: boolean; deliveries: Record<string, number>; events: { total: number } }>;
}

type Method = 'GET' | 'POST' | 'DELETE';

/** Many random changes take minutes. */
const answerMs = 600_000;
const answerBytesMax = 1024 * 1024;

export function sandboxControl(sandbox: { url: string; controlToken: string }): SandboxControl {
  const call = async <T>(method: Method, url: string, body?: unknown): Promise<T> => {
    const { status, text, isWhole } = await ask(url, {
      method,
      headers: {
        authorization: `Bearer ${sandbox.controlToken}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      body: body === undefined ? undefined : JSON.stringify(body),
      withinMs: answerMs,
      bytesMax: answerBytesMax,
    });
    if (status < 200 || status > 299) throw new Error(`${method} ${url}: ${status} ${text.slice(0, 300)}`);
    if (!isWhole) throw new Error(`${method} ${url}: the answer is not complete`);
    return (text === '' ? undefined : JSON.parse(text)) as T;
  };
  const control = <T>(method: Method, path: string, body?: unknown) =>
    call<T>(method, `${sandbox.url}/sandbox/${path}`, body);
  return {
    registerEndpoint: async (url) => {
      const listed = await control<{ endpoints?: { id: string }[] } | { id: string }[]>('GET', 'endpoints');
      const endpoints = Array.isArray(listed) ? listed : (listed.endpoints ?? []);
      for (const { id } of endpoints) await call('DELETE', `${sandbox.url}/sandbox/endpoints/${id}`);
      return (await control<{ secret: string }>('POST', 'endpoints', { url })).secret;
    },
    disturb: (how) => control('POST', 'disturb', how),
    live: (perMinute) => control('POST', 'live', { perMinute }),
    randomChanges: (count, seed) => control('POST', 'random', { count, seed }),
    status: () => control('GET', 'status'),
  };
}
