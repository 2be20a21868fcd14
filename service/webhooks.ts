import { request } from 'undici';
import { Failure } from '../contract/failures.ts';
import { failureOfError, failureOfStatus } from './classify.ts';
import { isObject } from './json.ts';
import { createQuote } from './quote.ts';

const timeoutMs = 30_000;
const path = '/external/configure_webhook';

/** The service's switch for webhook events, and the door to its portal (seed 2.1, 3.1, 4). */
export interface WebhookConfiguration {
  enabled(): Promise<boolean>;
  /** Switches events on or off for the whole organization (seed 3.1); returns the new state. */
  enable(enabled: boolean): Promise<boolean>;
  /**
   * Address of the portal, valid for 7 days (seed 8).
   * @throws Failure while webhooks are disabled: the portal is inaccessible then (seed 3.1)
   */
  portal(): Promise<string>;
}

/** @param baseUrl versioned base address; the key appears in no error. */
export function webhookConfiguration(options: { baseUrl: string; apiKey: string }): WebhookConfiguration {
  const quote = createQuote(options.apiKey);

  async function call(method: 'GET' | 'PATCH' | 'POST', body?: unknown): Promise<unknown> {
    const text = await send(method, body);
    try {
      return JSON.parse(text);
    } catch {
      throw new Failure('SERVICE_ANSWER_UNREADABLE', `expected JSON, got ${quote(text)}`);
    }
  }

  async function send(method: 'GET' | 'PATCH' | 'POST', body: unknown): Promise<string> {
    try {
      const answer = await request(`${options.baseUrl}${path}`, {
        method,
        headers: {
          'x-api-key': options.apiKey,
          'content-type': 'application/json',
          accept: 'application/json',
        },
        body: method === 'GET' ? null : JSON.stringify(body),
        headersTimeout: timeoutMs,
        bodyTimeout: timeoutMs,
      });
      const text = await answer.body.text();
      const code = answer.statusCode === 201 ? null : failureOfStatus(answer.statusCode);
      if (code === null) return text;
      throw new Failure(code, `${method} ${path} answered ${answer.statusCode}: ${quote(text)}`, {
        status: answer.statusCode,
      });
    } catch (error) {
      const code = failureOfError(error);
      if (code === undefined) throw error;
      throw new Failure(code, `${method} ${path}: ${(error as Error).message}`, { cause: error });
    }
  }

  const state = (answer: unknown): boolean => {
    if (isObject(answer) && typeof answer.enabled === 'boolean') return answer.enabled;
    throw new Failure(
      'SERVICE_ANSWER_UNREADABLE',
      `expected {enabled}, got ${quote(JSON.stringify(answer))}`,
    );
  };

  return {
    enabled: async () => state(await call('GET')),
    enable: async (enabled) => state(await call('PATCH', { enabled })),
    portal: async () => {
      const answer = await call('POST', {});
      const texts = isObject(answer) ? Object.values(answer) : [answer];
      // The field's name is not shown (seed 4): the first value that is an address.
      const url = texts.find((value) => typeof value === 'string' && /^https?:\/\//.test(value));
      if (typeof url === 'string') return url;
      throw new Failure('SERVICE_ANSWER_UNREADABLE', `expected a URL, got ${quote(JSON.stringify(answer))}`);
    },
  };
}
