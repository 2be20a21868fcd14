import { type Dispatcher, Pool } from 'undici';
import type { EndpointCatalogue } from '../contract/endpoints.ts';
import { answerMemory, limits } from '../contract/limits.ts';
import type { Log } from '../contract/log.ts';
import { requestPolicy } from '../contract/retry-policy.ts';
import { type AnswerMemory, createAnswerMemory } from './answer-memory.ts';
import type { WallClock } from './clock.ts';
import { type Proxies, throughProxies } from './proxy.ts';
import type { OnRequest } from './request-result.ts';
import type { RetryBudget } from './retry.ts';
import type { Wire } from './send.ts';

export interface ServiceClientOptions {
  /** Versioned base address, for example ending in /v2.2 (service.md 9). */
  readonly baseUrl: string;
  readonly apiKey: string;
  readonly endpoints: EndpointCatalogue;
  readonly maxConcurrency?: number;
  /** Time-out of one attempt, from connecting to the last byte. */
  readonly timeoutMs?: number;
  /** Maximum size of one answer, decompressed. */
  readonly maxBodyBytes?: number;
  /** The memory that all answers share; by default, each client has its own. */
  readonly memory?: AnswerMemory;
  readonly budget?: RetryBudget;
  readonly clock: WallClock;
  /** Returns a number from 0 to below 1, for jitter. */
  readonly random: () => number;
  readonly log: Pick<Log, 'debug' | 'warn'>;
  readonly onRequest?: OnRequest;
  readonly version?: string;
  readonly proxies?: Proxies | undefined;
  /** Replaces the client's own pool if there is no proxy; the caller closes it. */
  readonly dispatcher?: Dispatcher;
}

type WireOptions = Pick<
  ServiceClientOptions,
  | 'baseUrl'
  | 'apiKey'
  | 'clock'
  | 'version'
  | 'maxConcurrency'
  | 'proxies'
  | 'dispatcher'
  | 'timeoutMs'
  | 'maxBodyBytes'
  | 'memory'
>;

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
