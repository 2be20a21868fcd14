import { isUtf8 } from 'node:buffer';
import { pipeline, type Readable } from 'node:stream';
import { createGunzip, type Gunzip } from 'node:zlib';
import { type Dispatcher, Pool } from 'undici';
import { Failure } from '../contract/failures.ts';
import { withoutByteOrderMark } from '../contract/json.ts';
import { answerMemory, limits } from '../contract/limits.ts';
import { requestPolicy } from '../contract/retry-policy.ts';
import { withoutSecrets } from '../contract/without-secrets.ts';
import { type AnswerMemory, type AnswerPart, createAnswerMemory } from './answer-memory.ts';
import { nameOf } from './failures.ts';
import { type Proxies, throughProxies } from './proxy.ts';
import type { WallClock } from './throttle.ts';

export interface WireOptions {
  /** Versioned base address, for example ending in /v2.2 (service.md 9). */
  readonly baseUrl: string;
  readonly apiKey: string;
  readonly clock: WallClock;
  readonly version?: string;
  readonly maxConcurrency?: number;
  readonly proxies?: Proxies | undefined;
  /** Replaces the client's own pool if there is no proxy; the caller closes it. */
  readonly dispatcher?: Dispatcher;
  /** Time-out of one attempt, from connecting to the last byte. */
  readonly timeoutMs?: number;
  /** Maximum size of one answer, decompressed. */
  readonly maxBodyBytes?: number;
  /** The memory that all answers share; by default, each client has its own. */
  readonly memory?: AnswerMemory;
}

export interface Wire {
  readonly dispatcher: Dispatcher;
  readonly origin: string;
  /** Path of the base address, before every path of the catalogue. */
  readonly prefix: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
  readonly maxBodyBytes: number;
  /** The memory that all answers share. */
  readonly memory: AnswerMemory;
  readonly clock: WallClock;
}

/**
 * Makes what all requests of a client share.
 * @throws Error, without the key, if the base address is not an http(s) URL, or a header cannot carry the key
 */
export function openWire(options: WireOptions): Wire {
  const { apiKey, clock, version, proxies, maxConcurrency = limits.requestsAtOnce } = options;
  const base = baseOf(options.baseUrl);
  if (!/^[\x21-\x7e]+$/.test(apiKey)) throw new Error('the API key must be printable ASCII without spaces');
  const direct = () => options.dispatcher ?? new Pool(base.origin, { connections: maxConcurrency });
  return {
    dispatcher: (proxies && throughProxies(proxies, maxConcurrency)) ?? direct(),
    origin: base.origin,
    prefix: base.prefix,
    headers: {
      'x-api-key': apiKey,
      accept: 'application/json',
      'accept-encoding': 'gzip',
      'user-agent': version === undefined ? 'metersync' : `metersync/${version}`,
    },
    timeoutMs: options.timeoutMs ?? requestPolicy.timeoutMs,
    maxBodyBytes: options.maxBodyBytes ?? limits.answerBytesMax,
    memory: options.memory ?? createAnswerMemory(answerMemory),
    clock,
  };
}

function baseOf(baseUrl: string): { readonly origin: string; readonly prefix: string } {
  const url = URL.canParse(baseUrl) ? new URL(baseUrl) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol)) {
    throw new Error(
      `the service's base address must be an http or https URL, not ${JSON.stringify(baseUrl)}`,
    );
  }
  return { origin: url.origin, prefix: url.pathname.replace(/\/+$/, '') };
}

/** Bytes kept of an answer that is not a success, because such an answer is only quoted. */
const refusalBytesMax = 64 * 1024;

export type Method = 'GET' | 'PATCH' | 'POST';

/** A request for a path below the base address; GET by default. */
export interface Ask {
  readonly path: string;
  readonly method?: Method;
  readonly json?: unknown;
  /** Whether to keep secrets, because the body is a secret. The caller removes them before it quotes. */
  readonly verbatim?: boolean;
}

export interface Answer {
  readonly status: number;
  readonly retryAfter: string | undefined;
  readonly date: string | undefined;
  readonly contentType: string | undefined;
  /** The body without its secrets, unless verbatim, so that later code cannot store, log or quote any. */
  readonly text: string;
  /** Bytes of the body on the wire. */
  readonly bytes: number;
  /** Gives back the memory of the answer. Call it when the records are written, or not wanted. */
  readonly release: () => void;
}

/** The reason that ends the wait for the deadline. Without it, each abort would create an exception. */
const inTime = 'answered';

/**
 * Sends one request and reads the complete answer, of any status, without following redirects. The deadline
 * covers everything, except while the answer waits for memory, which has a limit of its own.
 * @throws Failure SERVICE_UNREACHABLE at the deadline; SERVICE_ANSWER_UNREADABLE for a body that is too long,
 *   not UTF-8, in an encoding that was not requested, or without memory in time; the signal's reason as soon
 *   as it aborts; otherwise the errors of undici, zlib and the network
 */
export async function send(wire: Wire, ask: Ask, signal: AbortSignal | undefined): Promise<Answer> {
  signal?.throwIfAborted();
  const stop = new AbortController();
  const abort = (): void => stop.abort(signal?.reason);
  signal?.addEventListener('abort', abort, { once: true });
  const deadline = startDeadline(wire, (late) => stop.abort(late));
  const { part, begun } = wire.memory.begin(stop.signal);
  try {
    await deadline.duringWait(begun);
    const take = async (piece: Buffer): Promise<void> => {
      await deadline.duringWait(part.take(piece, stop.signal));
    };
    return await exchange(wire, ask, { part, take }, stop.signal);
  } catch (error) {
    part.release();
    throw error;
  } finally {
    deadline.end();
    signal?.removeEventListener('abort', abort);
  }
}

/** Starts the deadline; calls `onLate` with the failure if the answer or a wait for memory takes too long. */
function startDeadline({ clock, timeoutMs }: Wire, onLate: (late: Failure) => void) {
  let timer = new AbortController();
  const start = (ms: number, late: () => Failure): void => {
    timer = new AbortController();
    clock.sleep(ms, timer.signal).then(
      () => onLate(late()),
      () => undefined,
    );
  };
  const end = (): void => timer.abort(inTime);
  let leftMs = timeoutMs;
  let since = clock.now();
  const run = (): void => {
    since = clock.now();
    start(leftMs, () => new Failure('SERVICE_UNREACHABLE', `no complete answer within ${timeoutMs} ms`));
  };
  run();
  return {
    end,
    /** Awaits memory, if the answer has to wait for it. The deadline pauses meanwhile. */
    async duringWait(wait: Promise<void> | undefined): Promise<void> {
      if (wait === undefined) return;
      end();
      leftMs = Math.max(leftMs - (clock.now() - since), 0);
      const waitMs = requestPolicy.memoryWaitMaxMs;
      const words = `other answers held the memory of all answers for ${waitMs} ms`;
      start(waitMs, () => new Failure('SERVICE_ANSWER_UNREADABLE', words));
      await wait;
      end();
      run();
    },
  };
}

/** The part of an answer that is being read, and how it takes more memory. */
interface Reading {
  readonly part: AnswerPart;
  readonly take: (piece: Buffer) => Promise<void>;
}

async function exchange(
  wire: Wire,
  { path, method = 'GET', json, verbatim = false }: Ask,
  reading: Reading,
  signal: AbortSignal,
): Promise<Answer> {
  const { statusCode, headers, body } = await wire.dispatcher.request({
    origin: wire.origin,
    path: wire.prefix + path,
    method,
    headers: json === undefined ? wire.headers : { ...wire.headers, 'content-type': 'application/json' },
    body: json === undefined ? null : JSON.stringify(json),
    signal,
    // undici's time-outs are off: metersync has a deadline of its own, on the injected clock.
    headersTimeout: 0,
    bodyTimeout: 0,
  });
  const success = statusCode === 200 || statusCode === 201;
  // The status identifies a refusal, even if its body is cut or cannot be decoded.
  const unread = (error: unknown): Body => {
    if (success || signal.aborted) throw error;
    return { text: '', bytes: 0 };
  };
  const bytesMax = success ? wire.maxBodyBytes : refusalBytesMax;
  const encoding = first(headers['content-encoding']);
  const { text, bytes } = await readBody(body, encoding, { bytesMax, success, take: reading.take }).catch(
    unread,
  );
  reading.part.complete();
  return {
    status: statusCode,
    retryAfter: first(headers['retry-after']),
    date: first(headers.date),
    contentType: first(headers['content-type']),
    text: verbatim ? text : withoutSecrets(text),
    bytes,
    release: reading.part.release,
  };
}

interface Body {
  readonly text: string;
  /** Bytes on the wire. */
  readonly bytes: number;
}

/** Reads a body as text. A success is read completely; of a refusal the first `bytesMax` are enough. */
async function readBody(
  body: Readable,
  encoding: string | undefined,
  options: { readonly bytesMax: number; readonly success: boolean; readonly take: Reading['take'] },
): Promise<Body> {
  const { bytesMax, success, take } = options;
  const pieces: Buffer[] = [];
  let length = 0;
  const unpacked = unpack(body, encoding);
  for await (const piece of unpacked) {
    length += piece.length;
    if (success && length > bytesMax) throw tooLong(bytesMax);
    await take(piece);
    pieces.push(piece);
    if (length > bytesMax) break;
  }
  const [only] = pieces;
  const whole = pieces.length === 1 && only !== undefined ? only : Buffer.concat(pieces, length);
  if (success && !isUtf8(whole)) throw new Failure('SERVICE_ANSWER_UNREADABLE', 'the answer is not UTF-8');
  const bytes = 'bytesWritten' in unpacked ? unpacked.bytesWritten : length;
  return { text: withoutByteOrderMark(whole.toString('utf8')), bytes };
}

/** Bytes that are decompressed at a time. Smaller pieces would need more rounds through the thread pool. */
const unpackedPieceBytes = 64 * 1024;

function unpack(body: Readable, encoding: string | undefined): Readable | Gunzip {
  const name = encoding?.trim().toLowerCase() ?? 'identity';
  if (name === 'identity' || name === '') return body;
  if (name === 'gzip' || name === 'x-gzip')
    // The iteration throws the errors of both streams.
    return pipeline(body, createGunzip({ chunkSize: unpackedPieceBytes }), () => undefined);
  body.on('error', () => undefined).destroy();
  throw new Failure('SERVICE_ANSWER_UNREADABLE', `the answer's encoding is ${nameOf(name)}`);
}

function tooLong(bytesMax: number): Failure {
  return new Failure('SERVICE_ANSWER_UNREADABLE', `the answer is longer than ${bytesMax} bytes`);
}

function first(header: string | string[] | undefined): string | undefined {
  return Array.isArray(header) ? header[0] : header;
}
