import { createHmac, createSecretKey } from 'node:crypto';
import { type BigIntStats, closeSync, constants, fstatSync, openSync, readFileSync, statSync } from 'node:fs';
import { Webhook } from 'standardwebhooks';
import type { Log } from '../contract/log.ts';
import { httpLimits } from './http-limits.ts';

/** Returns the keys in force, in any order. It is called for every request, so it must be cheap. */
export type SecretSource = () => readonly SigningKey[];

/** Keys of the settings or of a file. */
export interface ConfiguredSecrets extends SecretSource {
  /** Whether the last reading succeeded; if not, the keys from before are in force. */
  readonly valid: boolean;
}

const prefix = 'whsec_';
/** The signature rules ask for 24 to 64 random bytes; a shorter key is a typing error. */
const secretBytesMin = 24;
/** The delivery provider signs with one key and at most ten old keys. Each key costs one HMAC for each request. */
const secretsMax = 16;
/** A file with this word as its only line revokes all secrets. An empty file does not: it may be half written. */
const noSecrets = 'none';

/** Names the configured secrets that are wrong, by position and never by content. */
export class SecretsError extends Error {
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(`webhook secrets: ${problems.join('; ')}`);
    this.name = 'SecretsError';
    this.problems = problems;
  }
}

/**
 * Checks secrets (`whsec_` and base64) and makes each ready to verify with, equal ones once.
 * @throws SecretsError that lists every problem: an empty, short or zero key would let anyone sign.
 */
export function parseSecrets(secrets: readonly string[]): readonly SigningKey[] {
  if (secrets.length === 0) throw new SecretsError(['none is configured']);
  if (secrets.length > secretsMax) {
    throw new SecretsError([`${secrets.length} are configured, and at most ${secretsMax} are allowed`]);
  }
  const problems = secrets.flatMap((secret, index) => {
    const problem = problemOfSecret(secret);
    return problem === undefined ? [] : [`secret ${index + 1} ${problem}`];
  });
  if (problems.length > 0) throw new SecretsError(problems);
  return [...new Set(secrets)].map((secret) => createSigningKey(keyOf(secret)));
}

/** Returns what is wrong with a secret. Encodes the key again, because `Buffer` skips what is not base64. */
function problemOfSecret(secret: string): string | undefined {
  if (secret === '') return 'is empty';
  if (!secret.startsWith(prefix)) return `does not begin with ${prefix}`;
  const key = keyOf(secret);
  if (key.toString('base64') !== secret.slice(prefix.length))
    return `is not ${prefix} followed by padded base64`;
  if (key.every((byte) => byte === 0)) return 'is a key of zero bytes, which anyone can guess';
  if (key.length < secretBytesMin)
    return `has ${key.length} bytes, and at least ${secretBytesMin} are needed`;
  return undefined;
}

function keyOf(secret: string): Buffer {
  return Buffer.from(secret.slice(prefix.length), 'base64');
}

/** Returns secrets that never change. Throws SecretsError. */
export function fixedSecrets(secrets: readonly string[]): ConfiguredSecrets {
  const parsed = parseSecrets(secrets);
  return Object.assign(() => parsed, { valid: true });
}

/** Reads one secret from each line; blank lines and lines that begin with # are left out. */
function secretsOfText(text: string): string[] {
  return text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('#'));
}

/**
 * Secrets in a file that is checked when they are used, at most once a second, so that a rotation needs no
 * restart. If a new version is wrong, this is logged once and the previous secrets stay valid.
 * @param now milliseconds of any monotonic clock
 * @throws SecretsError if the first version is wrong or cannot be read
 */
export function fileSecrets(file: { path: string; now: () => number; log: Log }): ConfiguredSecrets {
  const { path, now, log } = file;
  let version: string | undefined = versionOfFile(path);
  let secrets = readFirst(path, log);
  let checkedAt = now();
  let problem: string | undefined;
  const read = (): readonly SigningKey[] => {
    if (now() - checkedAt < httpLimits.secretsCheckMs) return secrets;
    checkedAt = now();
    const seen = versionOfFile(path);
    if (seen === version) return secrets;
    version = seen;
    try {
      secrets = readSecretsFile(path, log);
      problem = undefined;
      log.info({ path, count: secrets.length }, 'webhook secrets read again');
    } catch (error) {
      const before = problem;
      problem = error instanceof Error ? error.message : String(error);
      // Content that is wrong is not read again. A failure to read the file may be temporary, so it is tried again.
      const isJudged = error instanceof SecretsError;
      if (!isJudged) version = undefined;
      if (isJudged || problem !== before) {
        log.error(
          { path, problem },
          'webhook secrets not read: the secrets that were read before stay valid until the file contains other secrets or the word none',
        );
      }
    }
    return secrets;
  };
  return Object.defineProperty(read, 'valid', { get: () => problem === undefined }) as ConfiguredSecrets;
}

function readFirst(path: string, log: Log): readonly SigningKey[] {
  try {
    return readSecretsFile(path, log);
  } catch (error) {
    if (error instanceof SecretsError) throw error;
    throw new SecretsError([`their file cannot be read: ${(error as Error).message}`]);
  }
}

/** @throws SecretsError, or Error of the file system */
function readSecretsFile(path: string, log: Log): readonly SigningKey[] {
  // Opening a pipe would wait until somebody writes to it, and no delivery would be answered meanwhile.
  const file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const stats = fstatSync(file, { bigint: true });
    if (stats.isFIFO())
      throw new SecretsError([`${path} is a pipe, which is not accepted as a secrets file`]);
    judgeMode(path, stats, log);
    const secrets = secretsOfText(readFileSync(file, 'utf8'));
    if (secrets.length !== 1 || secrets[0] !== noSecrets) return parseSecrets(secrets);
    log.warn({ path }, 'no webhook secret is valid: every delivery is refused');
    return [];
  } finally {
    closeSync(file);
  }
}

/**
 * Refuses a file that other users can write: they could sign events. If they can read it, this logs a
 * warning, unless it belongs to another user: the files that an orchestrator mounts have to be readable.
 */
function judgeMode(path: string, { mode, uid }: BigIntStats, log: Log): void {
  // Windows has other permissions, and does not report them here.
  if (process.platform === 'win32') return;
  if ((mode & 0o022n) !== 0n) {
    throw new SecretsError([`their file can be written by other users than its owner: chmod 600 ${path}`]);
  }
  if ((mode & 0o004n) !== 0n && Number(uid) === process.getuid?.()) {
    log.warn({ path }, 'the file of webhook secrets can be read by every user of this machine: chmod 600');
  }
}

/** Identifies a version of the file, also by inode, because a mounted secret may be a link. Never throws. */
function versionOfFile(path: string): string {
  try {
    const stat = statSync(path, { bigint: true });
    return `${stat.ino}/${stat.size}/${stat.mtimeNs}/${stat.ctimeNs}`;
  } catch (error) {
    return String((error as NodeJS.ErrnoException).code);
  }
}

/**
 * From this size on, Node's own HMAC checks a body first. The provider's library is JavaScript and takes over
 * ten milliseconds for 1 MiB: strangers could stop the receiver with that.
 */
const triedFirstBytesMin = 16 * 1024;

export interface SigningKey {
  /** Returns the provider's signature, with its version (service.md 5.3, 5.4), for a time in Unix seconds. */
  sign(id: string, timestamp: number, body: string): string;
  /** False if this key certainly did not sign the body; always true for a small body. Costs one HMAC at most. */
  couldHaveSigned(
    id: string,
    timestamp: number,
    body: Buffer,
    matches: (signature: string) => boolean,
  ): boolean;
}

export function createSigningKey(bytes: Buffer): SigningKey {
  const webhook = new Webhook(bytes.toString('base64'));
  // Made once: an HMAC keyed with bytes costs five times as much.
  const key = createSecretKey(bytes);
  return {
    sign: (id, timestamp, body) => webhook.sign(id, new Date(timestamp * 1_000), body),
    couldHaveSigned(id, timestamp, body, matches) {
      if (body.length < triedFirstBytesMin) return true;
      const hmac = createHmac('sha256', key).update(`${id}.${timestamp}.`).update(body);
      return matches(`v1,${hmac.digest('base64')}`);
    },
  };
}
