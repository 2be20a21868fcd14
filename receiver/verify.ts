import { isUtf8 } from 'node:buffer';
import { timingSafeEqual } from 'node:crypto';
import type { SecretSource } from './secrets.ts';

/** Why a request is not a delivery of the service. It is counted, and not told to the sender. */
export type RefusalReason =
  | HeaderProblem
  | 'id-malformed'
  | 'timestamp-malformed'
  | 'timestamp-old'
  | 'timestamp-new'
  | 'signatures-too-many'
  | 'signature-malformed'
  | 'signature-wrong'
  | 'body-not-utf8';

/** What a request's headers say about a delivery: well-formed and in time, but not yet proved. */
export interface Claim {
  readonly id: string;
  readonly timestamp: number;
  /** The well-formed signatures, one of which has to match the body. */
  readonly signatures: readonly Buffer[];
}

export interface Verified {
  /** Message id: the same on every attempt (service.md 5.3). */
  readonly id: string;
  /** Unix seconds of this attempt. */
  readonly timestamp: number;
  /** Exactly the signed bytes, as text. */
  readonly body: string;
}

/** Judges a request in two steps, so that wrong headers end it before its body is read. Never throws. */
export interface Verify {
  /** Judges the headers as they arrived: name, value, name, value, … */
  headers(rawHeaders: readonly string[]): Claim | RefusalReason;
  /** Judges the bytes of the body by what the headers claimed. */
  body(claim: Claim, body: Buffer): Verified | RefusalReason;
}

/** Printable ASCII but no space or dot (the separator of signed parts), short enough for a workflow id. */
const idPattern = /^[\x21-\x2d\x2f-\x7e]{1,200}$/;
/** Strict, because the library's parseInt takes `1614265330junk` for a number. Ten digits last until 2286. */
const timestampPattern = /^\d{10}$/;
/** `v1` and 32 bytes in canonical base64: the last character carries four bits and two zeros. */
const signaturePattern = /^v1,[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=$/;
/** The current key and ten old keys may sign during rotations; the rest is reserve. */
const signaturesMax = 16;

/**
 * Creates the check that every request passes first (service.md 5.2.5). Its rules come before the delivery
 * provider's library, which parses timestamps loosely, replaces bytes that are not UTF-8, and only knows its
 * own clock. A forged request costs at most one HMAC for each secret.
 * @param now Unix time in milliseconds
 * @param toleranceSeconds how far a timestamp may be from now, past or future
 */
export function createVerifier({
  secrets,
  families,
  now,
  toleranceSeconds,
}: {
  secrets: SecretSource;
  families: HeaderFamilies;
  now: () => number;
  toleranceSeconds: number;
}): Verify {
  return {
    headers(rawHeaders) {
      const headers = readSignatureHeaders(rawHeaders, families);
      if (typeof headers === 'string') return headers;
      const { id } = headers;
      if (!idPattern.test(id)) return 'id-malformed';
      if (!timestampPattern.test(headers.timestamp)) return 'timestamp-malformed';
      const timestamp = Number(headers.timestamp);
      const age = Math.floor(now() / 1_000) - timestamp;
      if (age > toleranceSeconds) return 'timestamp-old';
      if (age < -toleranceSeconds) return 'timestamp-new';
      const signatures = readSignatures(headers.signature);
      return typeof signatures === 'string' ? signatures : { id, timestamp, signatures };
    },
    body({ id, timestamp, signatures }, body) {
      if (!isUtf8(body)) return 'body-not-utf8';
      const matches = (expected: string): boolean => {
        const bytes = Buffer.from(expected, 'latin1');
        // Lengths are equal, so the comparison neither throws nor accepts a prefix.
        return signatures.some((signature) => timingSafeEqual(signature, bytes));
      };
      for (const key of secrets()) {
        if (!key.couldHaveSigned(id, timestamp, body, matches)) continue;
        // Unlike a TextDecoder's default, toString keeps a byte order mark, which is signed too.
        const text = body.toString('utf8');
        if (matches(key.sign(id, timestamp, text))) return { id, timestamp, body: text };
      }
      return 'signature-wrong';
    },
  };
}

/** Reads the well-formed `v1` signatures of a space-separated list and skips other versions. */
function readSignatures(header: string): readonly Buffer[] | 'signatures-too-many' | 'signature-malformed' {
  const tokens = header.split(' ', signaturesMax + 1);
  if (tokens.length > signaturesMax) return 'signatures-too-many';
  const signatures: Buffer[] = [];
  for (const token of tokens) {
    if (signaturePattern.test(token)) signatures.push(Buffer.from(token, 'latin1'));
  }
  return signatures.length > 0 ? signatures : 'signature-malformed';
}

/** The three headers that sign a delivery (service.md 5.3), unchanged. */
interface SignatureHeaders {
  readonly id: string;
  readonly timestamp: string;
  readonly signature: string;
}

/** Why headers do not belong to a signed delivery. */
type HeaderProblem = 'encoded' | 'headers-missing' | 'headers-mixed' | 'header-repeated';

/** Maps lower-case header names to their family and field. */
type HeaderFamilies = ReadonlyMap<string, { family: string; field: keyof SignatureHeaders }>;

/** The prefix is the vendor's name (service.md 5.3). These are the unbranded one and the provider's. */
const knownPrefixes = ['webhook', 'svix'];

/**
 * Returns the known families of signature headers and that of the configured prefix, which may end in a dash.
 * @throws Error if no header name can begin with the prefix
 */
export function headerFamilies(configuredPrefix?: string): HeaderFamilies {
  const configured = configuredPrefix?.toLowerCase().replace(/-$/, '');
  if (configured !== undefined && !/^[a-z0-9][a-z0-9_-]*$/.test(configured)) {
    throw new Error('the prefix of webhook headers must be letters, digits, - and _');
  }
  const prefixes = configured === undefined ? knownPrefixes : [...knownPrefixes, configured];
  const fields = ['id', 'timestamp', 'signature'] as const;
  return new Map(
    prefixes.flatMap((family) => fields.map((field) => [`${family}-${field}`, { family, field }] as const)),
  );
}

/**
 * Finds the one complete family of signature headers, in the raw headers (name, value, name, value, …),
 * because Node joins repeated headers. An id and a signature of different families are not a delivery.
 */
function readSignatureHeaders(
  rawHeaders: readonly string[],
  families: HeaderFamilies,
): SignatureHeaders | HeaderProblem {
  const found: { id?: string; timestamp?: string; signature?: string } = {};
  let family: string | undefined;
  let problem: HeaderProblem | undefined;
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    const name = (rawHeaders[at] as string).toLowerCase();
    if (name === 'content-encoding') return 'encoded';
    const slot = families.get(name);
    if (slot === undefined) continue;
    family ??= slot.family;
    if (slot.family !== family) problem ??= 'headers-mixed';
    else if (found[slot.field] !== undefined) problem ??= 'header-repeated';
    else found[slot.field] = rawHeaders[at + 1] as string;
  }
  if (problem !== undefined) return problem;
  const { id, timestamp, signature } = found;
  if (id === undefined || timestamp === undefined || signature === undefined) return 'headers-missing';
  return { id, timestamp, signature };
}
