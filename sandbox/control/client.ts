import { ask } from '../../http/ask.ts';
import { newSigningSecret } from '../delivery/endpoints.ts';

/** The control routes that the commands use (docs/reference/sandbox.md). */
export interface SandboxControl {
  /** The webhook endpoint that an earlier start left for the receiver, or a new one. */
  endpoint(): Promise<ReceiverEndpoint>;
  disturb(how: { duplicate?: number; shuffle?: boolean; delayMs?: [number, number] }): Promise<void>;
  /** Makes the sandbox do this many random changes a minute, until it is set to 0. */
  live(perMinute: number): Promise<void>;
  randomChanges(count: number, seed: number): Promise<{ changes: number; events: number }>;
  status(): Promise<{ quiet: boolean; deliveries: Record<string, number>; events: { total: number } }>;
}

export interface ReceiverEndpoint {
  readonly secret: string;
  /** Has messages sent to an address, those that already wait included. Call it when the receiver listens. */
  moveTo(url: string): Promise<void>;
}

interface ListedEndpoint {
  readonly id: string;
  readonly url: string;
  readonly secret: string;
}

/** The id of the endpoint that leads to metersync's own receiver. People add other endpoints in the portal. */
const receiverId = 'ep_metersync';

type Method = 'GET' | 'POST' | 'PUT' | 'DELETE';

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
    endpoint: async () => {
      const { endpoints } = await control<{ endpoints: ListedEndpoint[] }>('GET', 'endpoints');
      const secret = endpoints.find(({ id }) => id === receiverId)?.secret ?? newSigningSecret();
      return {
        secret,
        moveTo: async (url) => {
          await control('PUT', `endpoints/${receiverId}`, { url, secret });
          // Versions until 0.2.0 made another endpoint at each start, whose signatures the receiver would refuse.
          for (const { id } of endpoints.filter((one) => one.url === url && one.id !== receiverId))
            await control('DELETE', `endpoints/${id}`);
        },
      };
    },
    disturb: (how) => control('POST', 'disturb', how),
    live: (perMinute) => control('POST', 'live', { perMinute }),
    randomChanges: (count, seed) => control('POST', 'random', { count, seed }),
    status: () => control('GET', 'status'),
  };
}
