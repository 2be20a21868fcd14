import { Webhook } from 'standardwebhooks';
import { type buildConnector, Pool } from 'undici';
import { ask } from '../../http/ask.ts';

/** service.md 4.1.2: an attempt fails if there is no answer within 15 seconds. */
const answerTimeoutMs = 15_000;
/** How much of an answer's body an attempt keeps. */
const answerBytesMax = 20_000;

export interface Answer {
  readonly status: number | null;
  readonly durationMs: number;
  readonly requestHeaders: string;
  readonly responseHeaders: string | null;
  readonly responseBody: string | null;
  readonly error: string | null;
}

export interface Message {
  readonly id: string;
  /** The bytes as stored: they are signed and sent unchanged. */
  readonly payload: string;
  readonly signedAt: Date;
}

export interface Sender {
  send(message: Message): Promise<Answer>;
  close(): Promise<void>;
}

export interface SenderOptions {
  readonly url: string;
  /** Returns the secrets that are valid now, two during a rotation; each signs (service.md 5.2). */
  readonly secrets: () => readonly string[];
  readonly connections: number;
  /** service.md 5.3: the vendor's prefix of the three header names. */
  readonly headerPrefix: string;
  /** Makes the connections, and refuses addresses to which messages must not be sent. */
  readonly connect: buildConnector.connector;
}

/** Posts signed messages to one endpoint over kept-alive connections. Redirects are not followed. */
export function createSender({ url, secrets, connections, headerPrefix, connect }: SenderOptions): Sender {
  const signers = new Map<string, Webhook>();
  const signerOf = (secret: string): Webhook => {
    const signer = signers.get(secret) ?? new Webhook(secret);
    signers.set(secret, signer);
    return signer;
  };
  const pool = new Pool(new URL(url).origin, { connect, connections, pipelining: 1 });
  return {
    async send({ id, payload, signedAt }) {
      const headers = {
        'content-type': 'application/json',
        'user-agent': 'utility-data-sandbox',
        [`${headerPrefix}-id`]: id,
        [`${headerPrefix}-timestamp`]: Math.floor(signedAt.getTime() / 1000).toString(),
        [`${headerPrefix}-signature`]: secrets()
          .map((secret) => signerOf(secret).sign(id, signedAt, payload))
          .join(' '),
      };
      const begun = performance.now();
      const attempt = { requestHeaders: JSON.stringify(headers) };
      const elapsed = () => Math.round(performance.now() - begun);
      try {
        const request = { method: 'POST', headers, body: payload, dispatcher: pool } as const;
        // A body that breaks off does not change the status (service.md 4.1.2).
        const answer = await ask(url, { ...request, withinMs: answerTimeoutMs, bytesMax: answerBytesMax });
        return {
          ...attempt,
          status: answer.status,
          durationMs: elapsed(),
          responseHeaders: JSON.stringify(answer.headers),
          // Postgres cannot store NUL.
          responseBody: answer.text.replaceAll('\u0000', '\ufffd'),
          error: null,
        };
      } catch (error) {
        const none = { status: null, responseHeaders: null, responseBody: null };
        return { ...attempt, ...none, durationMs: elapsed(), error: reason(error) };
      }
    },
    close: () => pool.destroy(),
  };
}

function reason(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error.name === 'TimeoutError') return `no answer within ${answerTimeoutMs / 1000} s`;
  return error.message || error.name;
}
