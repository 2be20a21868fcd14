import { type BigIntStats, closeSync, fstatSync, openSync, readFileSync, statSync } from 'node:fs';
import type { Log } from './log.ts';
import { createSigningKey, type SigningKey } from './signing-key.ts';

/** The keys in force, newest first or in any order. Read on every request, so it must be cheap. */
export type SecretSource = () => readonly SigningKey[];

const prefix = 'whsec_';
/** The signature rules ask for 24 to 64 random bytes; a shorter key is a mistyped one. */
const secretBytesMin = 24;
/** The delivery provider signs with one key and at most ten old ones; each costs one HMAC a request. */
const secretsMax = 16;
/** The only line of a file that revokes every secret: an empty file may be one that is just being written. */
const noSecrets = 'none';
/** How often, at most, the file is looked at: a rotation is in force a second after it is written. */
const fileCheckIntervalMs = 1_000;

/** Says which of the configured secrets are wrong, by position and never by content. */
export class SecretsError extends Error {
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(`webhook secrets: ${problems.join('; ')}`);
    this.name = 'SecretsError';
    this.problems = problems;
  }
}

/**
 * Checks secrets as the service shows them (`whsec_` and base64) and makes each ready to verify with. The same
 * secret twice counts once.
 * @throws SecretsError that lists all that is wrong: an empty, short or zero key would let anyone sign.
 */
export function parseSecrets(secrets: readonly string[]): readonly SigningKey[] {
  if (secrets.length === 0) throw new SecretsError(['none is configured']);
  if (secrets.length > secretsMax) {
    throw new SecretsError([`${secrets.length} are configured, at most ${secretsMax} are possible`]);
  }
  const problems = secrets.flatMap((secret, index) => {
    const problem = problemOfSecret(secret);
    return problem === undefined ? [] : [`secret ${index + 1} ${problem}`];
  });
  if (problems.length > 0) throw new SecretsError(problems);
  return [...new Set(secrets)].map((secret) => createSigningKey(keyOf(secret)));
}

/** `Buffer` skips what is not base64, so `whsec_xyz!` would become a key of two bytes: hence the round trip. */
function problemOfSecret(secret: string): string | undefined {
  if (secret === '') return 'is empty';
  if (!secret.startsWith(prefix)) return `does not begin with ${prefix}`;
  const key = keyOf(secret);
  if (key.toString('base64') !== secret.slice(prefix.length))
    return `is not ${prefix} and then base64 with its padding`;
  if (key.every((byte) => byte === 0)) return 'is a key of zero bytes, which anyone can guess';
  if (key.length < secretBytesMin) return `holds ${key.length} bytes, at least ${secretBytesMin} are needed`;
  return undefined;
}

function keyOf(secret: string): Buffer {
  return Buffer.from(secret.slice(prefix.length), 'base64');
}

/**
 * Secrets that stay as they are.
 * @throws SecretsError
 */
export function fixedSecrets(secrets: readonly string[]): SecretSource {
  const parsed = parseSecrets(secrets);
  return () => parsed;
}

/** One secret a line; blank lines and lines that begin with # are left out. */
function secretsOfText(text: string): string[] {
  return text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('#'));
}

/**
 * Secrets in a file that is read again when it changes, so that a rotation needs no restart. It looks when it
 * is used, at most once a second. A new version that is wrong, or a file that is gone, is logged once and the
 * secrets before it stay in force. A file that says `none` takes them all back.
 * @param now milliseconds of any clock that only grows
 * @throws SecretsError when the first version is wrong or cannot be read
 */
export function fileSecrets({ path, now, log }: { path: string; now: () => number; log: Log }): SecretSource {
  let version = versionOfFile(path);
  let secrets = readFirst(path, log);
  let checkedAt = now();
  return () => {
    if (now() - checkedAt < fileCheckIntervalMs) return secrets;
    checkedAt = now();
    const seen = versionOfFile(path);
    if (seen === version) return secrets;
    version = seen;
    try {
      secrets = readSecretsFile(path, log);
      log.info({ path, secrets: secrets.length }, 'webhook secrets read again');
    } catch (error) {
      const problem = error instanceof Error ? error.message : String(error);
      log.error(
        { path, problem },
        'webhook secrets not read: those before stay in force, until the file holds others or the word none',
      );
    }
    return secrets;
  };
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
  const file = openSync(path, 'r');
  try {
    judgeMode(path, fstatSync(file, { bigint: true }), log);
    const secrets = secretsOfText(readFileSync(file, 'utf8'));
    if (secrets.length !== 1 || secrets[0] !== noSecrets) return parseSecrets(secrets);
    log.warn({ path }, 'no webhook secret is in force: every delivery is refused');
    return [];
  } finally {
    closeSync(file);
  }
}

/**
 * Who can write the file can sign events of their own, so such a file is not taken. Who can read it can do the same;
 * that is warned of and no more, as orchestrators mount secrets readable by all where nobody else is.
 */
function judgeMode(path: string, { mode }: BigIntStats, log: Log): void {
  // Windows has other permissions, and shows none of them here.
  if (process.platform === 'win32') return;
  if ((mode & 0o022n) !== 0n) {
    throw new SecretsError([`their file can be written by other users than its owner: chmod 600 ${path}`]);
  }
  if ((mode & 0o004n) !== 0n) {
    log.warn({ path }, 'the file of webhook secrets can be read by every user of this machine: chmod 600');
  }
}

/** Inode too: a secret mounted by an orchestrator changes by a swapped link. Never throws: a delivery is being judged. */
function versionOfFile(path: string): string {
  try {
    const stat = statSync(path, { bigint: true });
    return `${stat.ino}/${stat.size}/${stat.mtimeNs}/${stat.mode}`;
  } catch (error) {
    return String((error as NodeJS.ErrnoException).code);
  }
}
