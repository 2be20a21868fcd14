import { setTimeout as wait } from 'node:timers/promises';
import type { Dispatcher } from 'undici';
import { probeEventType } from '../../contract/event.ts';
import { doctorPolicy } from '../../contract/retry-policy.ts';
import type { Executor } from '../../db/connection/connect.ts';
import { outcomesOf } from '../../db/read/events.ts';
import { ask } from '../../http/ask.ts';
import type { SecretSource } from '../../receiver/secrets.ts';
import { type Check, check, fail, type Judged, notChecked, ok, warn } from './check.ts';

interface ProbeOptions {
  /** The address to which the service sends events; undefined when not configured. */
  readonly url: string | undefined;
  /** The way through proxies. */
  readonly dispatcher: Dispatcher | undefined;
  readonly secrets: () => SecretSource;
  /** The warehouse, to see whether the probe arrives; undefined when it cannot be queried. */
  readonly db: Executor | undefined;
  readonly id: string;
  /** Unix time in milliseconds. */
  readonly now: () => number;
  /** How long the probe may take from its answer to the journal. */
  readonly arrivesWithinMs: number;
}

/** Sends a signed probe through the public address, and waits until the journal has it as `ignored`. */
export async function checkReceiver(options: ProbeOptions): Promise<Check> {
  const { url } = options;
  const todo = 'Check RECEIVER_PUBLIC_URL, its name, certificate and proxy, and that the receiver runs.';
  return await check('receiver', todo, async () => {
    if (url === undefined) {
      return notChecked(
        'no probe was sent',
        'Set RECEIVER_PUBLIC_URL to the address that you gave the portal of the service.',
      );
    }
    const [secret] = options.secrets()();
    if (secret === undefined) return notChecked('no secret to sign a probe with');
    const at = new Date(options.now());
    const body = JSON.stringify({ eventType: probeEventType, sentAt: at.toISOString() });
    const timestamp = Math.floor(at.getTime() / 1000);
    const began = performance.now();
    const { dispatcher } = options;
    const answer = await ask(url, {
      dispatcher,
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'webhook-id': options.id,
        'webhook-timestamp': String(timestamp),
        'webhook-signature': secret.sign(options.id, timestamp, body),
      },
      body,
      withinMs: doctorPolicy.probeAnswerMs,
    });
    const answered = `a signed probe was answered ${answer.status} in ${Math.round(performance.now() - began)} ms`;
    return refusalOf(answer.status, answered) ?? (await arrival(options, answered));
  });
}

function refusalOf(status: number, saw: string): Judged | undefined {
  if (status >= 200 && status < 300) return undefined;
  if (status === 401) {
    return fail(
      saw,
      'Give the receiver and this command the secrets of the endpoint (WEBHOOK_SECRETS), have the proxy pass bodies on unchanged, and check the clocks.',
    );
  }
  if (status >= 300 && status < 400) {
    return fail(
      saw,
      'Register the address to which it redirects, because the service does not follow redirects.',
    );
  }
  if (status === 404 || status === 405) {
    return fail(saw, 'Make the address lead to POST /webhooks of the receiver.');
  }
  if (status === 503) return fail(saw, 'The receiver cannot reach Temporal, or is stopping: see its log.');
  return fail(saw, 'See the log of the receiver, and of the proxy in front of it.');
}

async function arrival({ db, id, now, arrivesWithinMs }: ProbeOptions, answered: string): Promise<Judged> {
  if (db === undefined) return warn(`${answered}; the journal cannot be read`, 'Repair the warehouse first.');
  const until = now() + arrivesWithinMs;
  for (;;) {
    const [outcome] = Object.keys(await outcomesOf(db, [id]));
    if (outcome !== undefined) return ok(`${answered} and is in the journal as event ${id} (${outcome})`);
    if (now() > until) break;
    await wait(doctorPolicy.probeLookEveryMs);
  }
  return fail(
    `${answered}, but is not in the journal after ${Math.round(arrivesWithinMs / 1000)} s`,
    'Check that the address leads to this receiver, and that a worker runs on its Temporal and this warehouse.',
  );
}
