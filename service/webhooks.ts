import { getGlobalDispatcher } from 'undici';
import { Failure } from '../contract/failures.ts';
import { isObject } from '../contract/json.ts';
import { requestPolicy } from '../contract/retry-policy.ts';
import { withoutSecrets } from '../contract/without-secrets.ts';
import { createQuote, failureOfStatus, parse, withRequest } from './failures.ts';
import type { Proxies } from './proxy.ts';
import type { WallClock } from './throttle.ts';
import { type Answer, type Method, openWire, send } from './wire.ts';

/** An answer only contains a switch or an address, so it is far smaller. */
const answerBytesMax = 1024 * 1024;
const path = '/external/configure_webhook';

/** The service's switch for webhook events, and the address of its portal (service.md 2.1, 3.1, 4). */
export interface WebhookConfiguration {
  enabled(): Promise<boolean>;
  /** Switches events on or off for the whole organization (service.md 3.1); returns the new state. */
  enable(enabled: boolean): Promise<boolean>;
  /** Returns the portal's address, valid for 7 days (service.md 8). Throws a Failure if it is off (3.1). */
  portal(): Promise<string>;
}

interface WebhookOptions {
  readonly baseUrl: string;
  /** No error contains the key. */
  readonly apiKey: string;
  readonly clock: WallClock;
  readonly proxies?: Proxies | undefined;
}

/** Makes the client of the switch. An answer has at most `answerBytesMax` and takes no longer than one attempt. */
export function webhookConfiguration(options: WebhookOptions): WebhookConfiguration {
  const quote = createQuote(options.apiKey);
  const wire = openWire({
    ...options,
    dispatcher: getGlobalDispatcher(),
    timeoutMs: requestPolicy.timeoutMs,
    maxBodyBytes: answerBytesMax,
  });

  const call = async (method: Method, json?: unknown): Promise<unknown> => parse(await ask(method, json));

  async function ask(method: Method, json: unknown): Promise<Answer> {
    try {
      // The portal's address is a secret, but the caller asked for it.
      const answer = await send(wire, { path, method, json, verbatim: method === 'POST' }, undefined);
      answer.release();
      const { status, text } = answer;
      const code = status === 201 ? null : failureOfStatus(status);
      if (code === null) return answer;
      const quoted = quote({ status, text: withoutSecrets(text) });
      throw new Failure(code, `answered ${status} with ${quoted}`, { status });
    } catch (error) {
      throw withRequest(error, `${method} ${path}`);
    }
  }

  const state = (answer: unknown): boolean => {
    if (isObject(answer) && typeof answer.enabled === 'boolean') return answer.enabled;
    throw new Failure('SERVICE_ANSWER_UNREADABLE', 'expected {enabled}, got something else');
  };

  return {
    enabled: async () => state(await call('GET')),
    enable: async (enabled) => state(await call('PATCH', { enabled })),
    portal: async () => {
      const answer = await call('POST', {});
      const texts = isObject(answer) ? Object.values(answer) : [answer];
      // The field's name is not documented (service.md 4), so the first address is taken.
      const url = texts.find((value) => typeof value === 'string' && /^https?:\/\//.test(value));
      if (typeof url === 'string') return url;
      throw new Failure('SERVICE_ANSWER_UNREADABLE', 'expected a URL, got an answer without one');
    },
  };
}
