import dns from 'node:dns';
import { isIP, type LookupFunction } from 'node:net';
import ipaddr from 'ipaddr.js';
import { Webhook } from 'standardwebhooks';
import { buildConnector, Pool } from 'undici';
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

interface Message {
  readonly id: string;
  /** The bytes as stored: they are signed and sent unchanged. */
  readonly payload: string;
  readonly signedAt: Date;
}

export interface Sender {
  send(message: Message): Promise<Answer>;
  close(): Promise<void>;
}

interface SenderOptions {
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

/** Whether messages may be sent to an IP address. */
export type Allows = (address: string) => boolean;

/** This machine, which is also what `0.0.0.0` means, and public addresses. */
const allowedRanges: ReadonlySet<string> = new Set(['loopback', 'unspecified', 'unicast']);

/**
 * Allows this machine, public addresses and the given networks. Other addresses may trust this machine more
 * than they should trust a person who can add an endpoint: neighbours in a private network, and the metadata
 * service of a cloud, which hands out credentials.
 * @param networks for example `172.16.0.0/12`, or single addresses
 * @throws Error if one of them is neither
 */
export function allowDestinations(networks: readonly string[] = []): Allows {
  const allowed = networks.map(parseNetwork);
  return (text) => {
    const address = ipaddr.process(text);
    if (allowedRanges.has(address.range())) return true;
    return allowed.some(
      ([network, bits]) => network.kind() === address.kind() && address.match(network, bits),
    );
  };
}

function parseNetwork(text: string): [ipaddr.IPv4 | ipaddr.IPv6, number] {
  if (ipaddr.isValidCIDR(text)) return ipaddr.parseCIDR(text);
  if (!ipaddr.isValid(text)) throw new Error(`${text} is not a network, for example 172.16.0.0/12`);
  const address = ipaddr.process(text);
  return [address, address.kind() === 'ipv4' ? 32 : 128];
}

/** Connects only to allowed addresses, checked for each connection, because a name may change its address. */
export function connectorTo(
  allows: Allows,
  lookup: typeof dns.lookup = dns.lookup,
): buildConnector.connector {
  const guarded: LookupFunction = (hostname, options, done) => {
    lookup(hostname, { ...options, all: true }, (error, found) => {
      if (error) return done(error, []);
      const allowed = found.filter(({ address }) => allows(address));
      const [first] = allowed;
      if (first === undefined) return done(refusal(found[0]?.address ?? hostname), []);
      if (options.all) return done(null, allowed);
      done(null, first.address, first.family);
    });
  };
  const connect = buildConnector({ lookup: guarded });
  return (options, done) => {
    // An address is not looked up, so it is checked here.
    const { hostname } = options;
    if (isIP(hostname) !== 0 && !allows(hostname)) done(refusal(hostname), null);
    else connect(options, done);
  };
}

const refusal = (address: string): Error =>
  new Error(`${address} is neither this machine nor public. Allow it with --deliver-to.`);
