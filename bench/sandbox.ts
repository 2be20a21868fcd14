import { mkdtemp } from 'node:fs/promises';
import { join } from 'node:path';
import { type SandboxProcess, type SandboxSize, startSandboxProcess } from '../cli/sandbox.ts';
import type { Outgoing } from './load.ts';
import type { Bench } from './measure.ts';

/** How many changes one request of the control routes asks for. More changes are made in portions. */
const changesTogether = 2_000;
const eventsTogether = 5_000;

/** The sandbox, in its own process and on its own database. */
export interface BenchSandbox extends SandboxProcess {
  /** URL of the database of the sandbox. */
  readonly databaseUrl: string;
  /** Makes random changes and returns their events. The bench sends them itself; nothing is delivered. */
  change(count: number, types?: readonly string[]): Promise<Outgoing[]>;
  /** Requests a path of the API or of the control routes, with the headers of both. The answer is JSON. */
  ask<T>(method: string, path: string, body?: unknown): Promise<T>;
  /** Returns the text of a page. */
  read(path: string): Promise<string>;
}

export async function startSandbox(bench: Bench, size: SandboxSize): Promise<BenchSandbox> {
  const databaseUrl = await bench.stack.database('sandbox');
  const sandbox = await startSandboxProcess({
    databaseUrl,
    dataDir: await mkdtemp(join(bench.stack.dir, 'sandbox-')),
    size,
    onLine: () => {},
  });
  bench.atEnd(() => sandbox.stop());
  // Events exist only while webhooks are enabled (service.md 6.1.1).
  await ask(sandbox, 'PATCH', `${sandbox.apiUrl}/external/configure_webhook`, { enabled: true });
  let seen = 0;
  return {
    ...sandbox,
    databaseUrl,
    ask: (method, path, body) => ask(sandbox, method, `${sandbox.url}${path}`, body),
    read: (path) => request(sandbox, 'GET', `${sandbox.url}${path}`),
    change: async (count, types) => {
      for (let made = 0; made < count; made += changesTogether) {
        const portion = { count: Math.min(changesTogether, count - made), seed: made + 1 };
        await ask(
          sandbox,
          'POST',
          `${sandbox.url}/sandbox/random`,
          types === undefined ? portion : { ...portion, types },
        );
      }
      const events: Outgoing[] = [];
      for (;;) {
        const url = `${sandbox.url}/sandbox/events?after=${seen}&limit=${eventsTogether}`;
        const page = await ask<{ events: ListedEvent[] }>(sandbox, 'GET', url);
        for (const { id, payload } of page.events) events.push({ id, body: JSON.stringify(payload) });
        seen = page.events.at(-1)?.seq ?? seen;
        if (page.events.length < eventsTogether) return events;
      }
    },
  };
}

interface ListedEvent {
  readonly seq: number;
  readonly id: string;
  readonly payload: unknown;
}

async function ask<T>(sandbox: SandboxProcess, method: string, url: string, body?: unknown): Promise<T> {
  return JSON.parse(await request(sandbox, method, url, body)) as T;
}

async function request(
  sandbox: SandboxProcess,
  method: string,
  url: string,
  body?: unknown,
): Promise<string> {
  const answer = await fetch(url, {
    method,
    headers: {
      'x-api-key': sandbox.apiKey,
      authorization: `Bearer ${sandbox.controlToken}`,
      'content-type': 'application/json',
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${method} ${url}: ${answer.status} ${text.slice(0, 300)}`);
  return text;
}
