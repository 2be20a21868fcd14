import { createHmac, randomBytes } from 'node:crypto';
import { connect, type Socket } from 'node:net';

/** The result of a load. */
export interface LoadReport {
  readonly events: number;
  /** Seconds from the first byte sent to the last answer. */
  readonly seconds: number;
  /** When the first byte was sent, in Unix milliseconds. */
  readonly beganAt: number;
  /** Milliseconds from each request to its answer. */
  readonly latencies: readonly number[];
}

/** Returns the events per second over several rounds. A longer round weighs more. */
export function perSecond(reports: readonly Pick<LoadReport, 'events' | 'seconds'>[]): number {
  const events = reports.reduce((sum, report) => sum + report.events, 0);
  return events / reports.reduce((sum, report) => sum + report.seconds, 0);
}

/** Returns the least value that is not exceeded by so many percent of the values. */
export function percentile(values: readonly number[], percent: number): number {
  const value = values.toSorted((a, b) => a - b)[Math.max(0, Math.ceil((values.length * percent) / 100) - 1)];
  if (value === undefined) throw new Error('nothing was measured');
  return value;
}

export const newSecret = (): string => `whsec_${randomBytes(32).toString('base64')}`;

/** An event to be sent: its id and the body that is signed. */
export interface Outgoing {
  readonly id: string;
  readonly body: string;
}

/** Makes the bytes of a delivery's request, signed now (service.md 5.3). */
export function signedRequest(secret: string, { id, body }: Outgoing): Buffer {
  const timestamp = Math.floor(Date.now() / 1000);
  const key = Buffer.from(secret.slice('whsec_'.length), 'base64');
  const signature = createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64');
  const headers = {
    'webhook-id': id,
    'webhook-timestamp': timestamp,
    'webhook-signature': `v1,${signature}`,
  };
  return bytesOfRequest(headers, body);
}

/** Makes the bytes of a webhook's request. */
export function bytesOfRequest(signature: Readonly<Record<string, string | number>>, body: string): Buffer {
  const head = [
    'POST /webhooks HTTP/1.1',
    'host: 127.0.0.1',
    'content-type: application/json',
    `content-length: ${Buffer.byteLength(body)}`,
    ...Object.entries(signature).map(([name, value]) => `${name}: ${value}`),
  ];
  return Buffer.from(`${head.join('\r\n')}\r\n\r\n${body}`);
}

/**
 * Sends every request over `inFlight` connections, one at a time on each.
 * @throws Error if an answer is not the expected one, because a rate of refusals is not a result
 */
export async function runLoad(
  port: number,
  requests: readonly Buffer[],
  inFlight: number,
  expected = 204,
): Promise<LoadReport> {
  if (requests.length === 0) throw new Error('nothing was prepared');
  const latencies: number[] = [];
  const sockets = Array.from({ length: Math.min(inFlight, requests.length) }, () => new LeanSocket(port));
  await Promise.all(sockets.map((socket) => socket.open()));
  const waiting = requests.values();
  const sendAll = async (socket: LeanSocket): Promise<void> => {
    for (const request of waiting) {
      const sentAt = performance.now();
      const status = await socket.send(request);
      latencies.push(performance.now() - sentAt);
      if (status !== expected) throw new Error(`a request was answered ${status} instead of ${expected}`);
    }
  };
  const beganAt = Date.now();
  const began = performance.now();
  try {
    await Promise.all(sockets.map(sendAll));
    return { events: requests.length, seconds: (performance.now() - began) / 1000, beganAt, latencies };
  } finally {
    for (const socket of sockets) socket.close();
  }
}

const headEnd = Buffer.from('\r\n\r\n');

/**
 * One keep-alive connection that sends complete requests in turn and reads only the status of an answer. It
 * must be cheap, because it shares the machine with the measured process.
 */
export class LeanSocket {
  readonly #port: number;
  #socket: Socket | undefined;
  #seen: Buffer = Buffer.alloc(0);
  #status = 0;
  #closing = false;
  #bodyBytesMissing = 0;
  #answer: PromiseWithResolvers<number> | undefined;

  constructor(port: number) {
    this.#port = port;
  }

  /** Sends the bytes of a request. Returns the status of its answer. */
  send(request: Buffer): Promise<number> {
    this.#answer = Promise.withResolvers();
    this.#socket ??= this.#open();
    this.#socket.write(request);
    return this.#answer.promise;
  }

  /** Connects before the first request, so that connecting is not timed. */
  async open(): Promise<void> {
    const socket = this.#open();
    this.#socket = socket;
    await new Promise<void>((done, failed) => socket.once('connect', done).once('error', failed));
  }

  close(): void {
    this.#socket?.destroy();
    this.#socket = undefined;
  }

  #open(): Socket {
    const socket = connect({ port: this.#port, host: '127.0.0.1', noDelay: true });
    socket.on('data', (bytes) => this.#read(bytes));
    socket.on('error', (error) => this.#answer?.reject(error));
    socket.on('close', () => {
      if (this.#socket !== socket) return;
      this.#answer?.reject(new Error('the connection was closed before the answer'));
      this.#socket = undefined;
    });
    return socket;
  }

  /** Keeps only the head. Only the end of the body matters. */
  #read(bytes: Buffer): void {
    if (this.#bodyBytesMissing > 0) {
      this.#readBody(bytes.length);
      return;
    }
    this.#seen = this.#seen.length === 0 ? bytes : Buffer.concat([this.#seen, bytes]);
    const end = this.#seen.indexOf(headEnd);
    if (end < 0) return;
    const head = this.#seen.toString('latin1', 0, end);
    this.#status = Number(head.slice(9, 12));
    this.#closing = /^connection: *close/im.test(head);
    this.#bodyBytesMissing =
      this.#status === 204 ? 0 : Number(/^content-length: *(\d+)/im.exec(head)?.[1] ?? 0);
    const bodyBytes = this.#seen.length - end - headEnd.length;
    this.#seen = Buffer.alloc(0);
    this.#readBody(bodyBytes);
  }

  #readBody(bytes: number): void {
    this.#bodyBytesMissing -= bytes;
    if (this.#bodyBytesMissing > 0) return;
    this.#bodyBytesMissing = 0;
    if (this.#closing) this.close();
    const answer = this.#answer;
    this.#answer = undefined;
    answer?.resolve(this.#status);
  }
}
