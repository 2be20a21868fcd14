import { isUtf8 } from 'node:buffer';
import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import type { Dispatcher } from 'undici';
import { Failure } from '../contract/failures.ts';
import { withoutSecrets } from '../contract/without-secrets.ts';
import type { Clock } from './clock.ts';
import { nameOf } from './unreadable.ts';

const unzip = promisify(gunzip);

/** Bytes kept of an answer that is not a success: it is only quoted. */
const refusalBytesMax = 64 * 1024;

export interface Wire {
  readonly dispatcher: Dispatcher;
  readonly origin: string;
  /** Path of the base address, before every path of the catalogue. */
  readonly prefix: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
  readonly maxBodyBytes: number;
  readonly clock: Clock;
}

export type Method = 'GET' | 'PATCH' | 'POST';

/** A request for a path below the base address; a GET by default. */
export interface Ask {
  readonly path: string;
  readonly method?: Method;
  readonly json?: unknown;
  /** Whether to keep the secrets of the body, for an answer that is one itself. The caller removes others. */
  readonly verbatim?: boolean;
}

export interface Answer {
  readonly status: number;
  readonly retryAfter: string | undefined;
  readonly date: string | undefined;
  readonly contentType: string | undefined;
  /** The body without its secrets, unless verbatim: later code has none to store, log or quote. */
  readonly text: string;
  /** Bytes of the body on the wire. */
  readonly bytes: number;
}

/**
 * Reason that ends the wait for the deadline. Without one, each abort would make an exception with its stack.
 */
const inTime = 'answered';

/**
 * Sends one request and reads the complete answer, of any status, without following redirects. The deadline
 * covers everything: connecting, the wait for the first byte, and a body that trickles.
 * @throws Failure SERVICE_UNREACHABLE at the deadline; SERVICE_ANSWER_UNREADABLE for a body that is too long,
 *   not UTF-8, or in an encoding that was not requested; the signal's reason as soon as it aborts; otherwise
 *   the errors of undici, zlib and the network
 */
export async function send(wire: Wire, ask: Ask, signal: AbortSignal | undefined): Promise<Answer> {
  signal?.throwIfAborted();
  const stop = new AbortController();
  const timer = new AbortController();
  const abort = (): void => stop.abort(signal?.reason);
  signal?.addEventListener('abort', abort, { once: true });
  const late = (): Failure =>
    new Failure('SERVICE_UNREACHABLE', `no complete answer within ${wire.timeoutMs} ms`);
  wire.clock.sleep(wire.timeoutMs, timer.signal).then(
    () => stop.abort(late()),
    () => undefined,
  );
  try {
    return await exchange(wire, ask, stop.signal);
  } finally {
    timer.abort(inTime);
    signal?.removeEventListener('abort', abort);
  }
}

async function exchange(
  wire: Wire,
  { path, method = 'GET', json, verbatim = false }: Ask,
  signal: AbortSignal,
): Promise<Answer> {
  const { statusCode, headers, body } = await wire.dispatcher.request({
    origin: wire.origin,
    path: wire.prefix + path,
    method,
    headers: json === undefined ? wire.headers : { ...wire.headers, 'content-type': 'application/json' },
    body: json === undefined ? null : JSON.stringify(json),
    signal,
    // The deadline is ours, on the injected clock.
    headersTimeout: 0,
    bodyTimeout: 0,
  });
  const success = statusCode === 200 || statusCode === 201;
  // The status identifies a refusal, even if its body is cut or cannot be decoded.
  const unread = (error: unknown): Buffer => {
    if (success || signal.aborted) throw error;
    return Buffer.alloc(0);
  };
  const bytes = await collect(body, success ? wire.maxBodyBytes : refusalBytesMax, success).catch(unread);
  const encoding = first(headers['content-encoding']);
  const decoded = await decode(bytes, encoding, wire.maxBodyBytes).catch(unread);
  if (success && !isUtf8(decoded)) throw new Failure('SERVICE_ANSWER_UNREADABLE', 'the answer is not UTF-8');
  const text = decoded.toString('utf8', startOf(decoded));
  return {
    status: statusCode,
    retryAfter: first(headers['retry-after']),
    date: first(headers.date),
    contentType: first(headers['content-type']),
    text: verbatim ? text : withoutSecrets(text),
    bytes: bytes.length,
  };
}

/** Collects a body; `complete` refuses one longer than `bytesMax`, otherwise its start is enough. */
async function collect(body: AsyncIterable<Buffer>, bytesMax: number, complete: boolean): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of body) {
    chunks.push(chunk);
    length += chunk.length;
    if (length <= bytesMax) continue;
    if (complete) throw tooLong(bytesMax);
    break;
  }
  return chunks.length === 1 && chunks[0] !== undefined ? chunks[0] : Buffer.concat(chunks, length);
}

async function decode(bytes: Buffer, encoding: string | undefined, bytesMax: number): Promise<Buffer> {
  const name = encoding?.trim().toLowerCase() ?? 'identity';
  if (name === 'identity' || name === '' || bytes.length === 0) return bytes;
  if (name !== 'gzip' && name !== 'x-gzip') {
    throw new Failure('SERVICE_ANSWER_UNREADABLE', `the answer's encoding is ${nameOf(name)}`);
  }
  return await unzip(bytes, { maxOutputLength: bytesMax });
}

function tooLong(bytesMax: number): Failure {
  return new Failure('SERVICE_ANSWER_UNREADABLE', `the answer is longer than ${bytesMax} bytes`);
}

function first(header: string | string[] | undefined): string | undefined {
  return Array.isArray(header) ? header[0] : header;
}

/** Returns where the text starts, behind a byte order mark, which neither JSON.parse nor Postgres accepts. */
function startOf(bytes: Buffer): number {
  return bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? 3 : 0;
}
