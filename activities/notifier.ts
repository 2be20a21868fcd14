import { unescape as decoded } from 'node:querystring';
import { Webhook } from 'standardwebhooks';
import type { Dispatcher } from 'undici';
import { notifyPolicy } from '../contract/retry-policy.ts';
import type { AlarmNotice } from '../health/alarms.ts';
import { ask } from '../http/ask.ts';

/** Where alarms are sent: an incoming webhook of Slack, or an address that accepts signed JSON. */
export interface NotifyTarget {
  readonly kind: 'slack' | 'json';
  readonly url: string;
}

/** Sends alarms to NOTIFY_URL, and calls HEARTBEAT_URL. */
export interface Notifier {
  /** Whether there is a target. */
  readonly sends: boolean;
  /** @throws Error that says why the target did not take it, without a secret */
  send(notice: AlarmNotice): Promise<void>;
  /** Calls HEARTBEAT_URL, if there is one. @throws Error without a secret */
  beat(): Promise<void>;
}

export interface NotifierOptions {
  readonly target: NotifyTarget | undefined;
  /** Signs JSON. */
  readonly secret?: string | undefined;
  readonly heartbeatUrl?: string | undefined;
  /** The way through proxies. */
  readonly dispatcher?: Dispatcher | undefined;
  readonly now: () => number;
}

export function createNotifier(options: NotifierOptions): Notifier {
  const { target, secret, heartbeatUrl, dispatcher, now } = options;
  return {
    sends: target !== undefined,
    async send(notice) {
      if (target === undefined) return;
      const message =
        target.kind === 'slack' ? slackText(notice) : signedJson(notice, secret, new Date(now()));
      await call(target.url, message, dispatcher);
    },
    async beat() {
      if (heartbeatUrl !== undefined) await call(heartbeatUrl, undefined, dispatcher);
    },
  };
}

interface Message {
  readonly body: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Writes a notice as JSON, which is the same at each try, and signs it as Standard Webhooks says. */
function signedJson(notice: AlarmNotice, secret: string | undefined, at: Date): Message {
  const timestamp = notice.until ?? notice.since;
  const body = JSON.stringify({ type: 'metersync.alerts', timestamp, data: { alerts: [notice] } });
  if (secret === undefined) return { body };
  const id = `${notice.id}-${notice.change}`;
  const headers = {
    'webhook-id': id,
    'webhook-timestamp': String(Math.floor(at.getTime() / 1_000)),
    'webhook-signature': new Webhook(secret).sign(id, at, body),
  };
  return { body, headers };
}

function slackText({ change, alert, severity, labels, detail, todo, runbook }: AlarmNotice): Message {
  const of = Object.values(labels).join(' ');
  const head = `metersync: ${alert}${of === '' ? '' : ` ${of}`} ${change} (${severity}): ${detail}`;
  const lines =
    change === 'resolved' ? [head] : [head, `What to do: ${todo.join(' ')}`, `Runbook: ${runbook}`];
  const text = lines.join('\n').replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
  return { body: JSON.stringify({ text }) };
}

/** Characters of an answer that an error quotes. */
const quotedMax = 200;

/** Posts a message, or gets an address if there is none. Its errors contain no secret part of the address. */
async function call(
  address: string,
  message: Message | undefined,
  dispatcher: Dispatcher | undefined,
): Promise<void> {
  const url = new URL(address);
  const { href, username, password, pathname, search } = url;
  const secrets = [href, username, password, pathname, search].filter(({ length }) => length > 1);
  const login = `${decoded(username)}:${decoded(password)}`;
  url.username = '';
  url.password = '';
  const hide = (text: string): string => secrets.reduce((left, secret) => left.replaceAll(secret, '…'), text);
  let answer: { readonly status: number; readonly text: string };
  try {
    answer = await ask(url, {
      dispatcher,
      method: message === undefined ? 'GET' : 'POST',
      body: message?.body,
      headers: {
        'user-agent': 'metersync',
        ...(message === undefined ? {} : { 'content-type': 'application/json' }),
        ...(login === ':' ? {} : { authorization: `Basic ${Buffer.from(login).toString('base64')}` }),
        ...message?.headers,
      },
      withinMs: notifyPolicy.requestMs,
    });
  } catch (error) {
    const { message, name, code } = error as Error & { code?: unknown };
    const why = name === 'TimeoutError' ? 'no answer in time' : message || String(code);
    // Without the cause, which may hold the address.
    throw new Error(`it does not answer: ${hide(why)}`);
  }
  if (answer.status >= 200 && answer.status < 300) return;
  const quoted = hide(answer.text).slice(0, quotedMax).trim();
  throw new Error(`it answered ${answer.status}${quoted === '' ? '' : `: ${quoted}`}`);
}
