import { unescape as decoded } from 'node:querystring';
import { Webhook } from 'standardwebhooks';
import { request } from 'undici';
import type { Notification } from '../../contract/notification.ts';
import type { NotifyTarget } from '../../contract/notify-target.ts';
import { notifyPolicy } from '../../contract/retry-policy.ts';
import type { ProxyWay } from '../../service/proxy.ts';
import { requestsOf, type Sign, type TargetRequest } from './request-of.ts';

/** Sends messages to the targets of NOTIFY_URLS. */
export interface Notifier {
  readonly targets: readonly string[];
  /** @throws Error that says why the target did not take it, without a secret */
  send(target: string, message: Notification): Promise<void>;
  /** Calls HEARTBEAT_URL, if there is one. @throws Error without a secret */
  beat(): Promise<void>;
  /** What is noted of each message that was sent. */
  onSent(target: string, taken: boolean): void;
}

export interface NotifierOptions {
  readonly targets: readonly NotifyTarget[];
  /** Signs messages to `json` targets. */
  readonly secret?: string | undefined;
  readonly heartbeatUrl?: string | undefined;
  /** Returns the way to an address, if it leads through a proxy. */
  readonly wayTo?: (address: string) => ProxyWay | undefined;
  readonly now: () => number;
  readonly onSent?: Notifier['onSent'];
}

export function createNotifier(options: NotifierOptions): Notifier {
  const { targets, secret, heartbeatUrl, wayTo, now, onSent = () => {} } = options;
  const sign = secret === undefined ? undefined : signWith(secret);
  return {
    targets: targets.map(({ name }) => name),
    async send(name, message) {
      const target = targets.find((one) => one.name === name);
      if (target === undefined) throw new Error('it is not in NOTIFY_URLS');
      const requests = requestsOf(target, message, { sign, now: () => new Date(now()) });
      for (const one of requests) await call(target, { method: 'POST', ...one }, wayTo?.(target.url));
    },
    async beat() {
      if (heartbeatUrl === undefined) return;
      const { pathname, search } = new URL(heartbeatUrl);
      const secrets = [heartbeatUrl, pathname, search];
      await call({ url: heartbeatUrl, secrets }, { method: 'GET' }, wayTo?.(heartbeatUrl));
    },
    onSent,
  };
}

function signWith(secret: string): Sign {
  const webhook = new Webhook(secret);
  return (id, at, body) => ({
    'webhook-id': id,
    'webhook-timestamp': String(Math.floor(at.getTime() / 1_000)),
    'webhook-signature': webhook.sign(id, at, body),
  });
}

/** Characters of an answer that an error quotes. */
const quotedMax = 200;

async function call(
  { url: address, secrets }: Pick<NotifyTarget, 'url' | 'secrets'>,
  { method, body, headers }: Partial<TargetRequest> & { method: 'GET' | 'POST' },
  { dispatcher, words = '' }: Partial<ProxyWay> = {},
): Promise<void> {
  const url = new URL(address);
  const login = `${decoded(url.username)}:${decoded(url.password)}`;
  url.username = '';
  url.password = '';
  const hide = (text: string): string =>
    secrets.reduce((left, secret) => (secret.length > 1 ? left.replaceAll(secret, '…') : left), text);
  let answer: { readonly status: number; readonly text: string };
  try {
    const { statusCode, body: answered } = await request(url, {
      ...(dispatcher && { dispatcher }),
      method,
      ...(body === undefined ? {} : { body }),
      headers: {
        'user-agent': 'metersync',
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...(login === ':' ? {} : { authorization: `Basic ${Buffer.from(login).toString('base64')}` }),
        ...headers,
      },
      signal: AbortSignal.timeout(notifyPolicy.requestMs),
    });
    answer = { status: statusCode, text: await answered.text() };
  } catch (error) {
    const { message, name, code } = error as Error & { code?: unknown };
    const why = name === 'TimeoutError' ? 'no answer in time' : message || String(code);
    // Without the cause, which may hold the address.
    throw new Error(`it does not answer${words}: ${hide(why)}`);
  }
  if (answer.status >= 200 && answer.status < 300) return;
  const said = hide(answer.text).slice(0, quotedMax).trim();
  throw new Error(`it answered ${answer.status}${words}${said === '' ? '' : `: ${said}`}`);
}
