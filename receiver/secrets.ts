import { readFileSync, statSync } from 'node:fs';
import { Webhook } from 'standardwebhooks';
import type { Log } from './log.ts';

/** The secrets in force, newest first or in any order. Read on every request, so it must be cheap. */
export type SecretSource = () => readonly Webhook[];

const prefix = 'whsec_';
/** The signature rules ask for 24 to 64 random bytes; a shorter key is a mistyped one. */
const secretBytesMin = 24;
/** The delivery provider signs with one key and at most ten old ones; each costs one HMAC a request. */
const secretsMax = 16;
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
 * @throws SecretsError that lists all that is wrong: an empty or short key would let anyone sign.
 */
export function parseSecrets(secrets: readonly string[]): readonly Webhook[] {
  if (secrets.length === 0) throw new SecretsError(['none is configured']);
  if (secrets.length > secretsMax) {
    throw new SecretsError([`${secrets.length} are configured, at most ${secretsMax} are possible`]);
  }
  const problems = secrets.flatMap((secret, index) => {
    const problem = problemOfSecret(secret);
    return problem === undefined ? [] : [`secret ${index + 1} ${problem}`];
  });
  if (problems.length > 0) throw new SecretsError(problems);
  return [...new Set(secrets)].map((secret) => new Webhook(secret));
}

/** `Buffer` skips what is not base64, so `whsec_xyz!` would become a key of two bytes: hence the round trip. */
function problemOfSecret(secret: string): string | undefined {
  if (secret === '') return 'is empty';
  if (!secret.startsWith(prefix)) return `does not begin with ${prefix}`;
  const encoded = secret.slice(prefix.length);
  const key = Buffer.from(encoded, 'base64');
  if (key.toString('base64') !== encoded) return `is not ${prefix} and then base64 with its padding`;
  if (key.length < secretBytesMin) return `holds ${key.length} bytes, at least ${secretBytesMin} are needed`;
  return undefined;
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
 * secrets before it stay in force.
 * @param now milliseconds of any clock that only grows
 * @throws SecretsError when the first version is wrong or cannot be read
 */
export function fileSecrets({ path, now, log }: { path: string; now: () => number; log: Log }): SecretSource {
  let version = versionOfFile(path);
  let secrets = parseSecrets(secretsOfText(readFirst(path)));
  let checkedAt = now();
  return () => {
    if (now() - checkedAt < fileCheckIntervalMs) return secrets;
    checkedAt = now();
    const seen = versionOfFile(path);
    if (seen === version) return secrets;
    version = seen;
    try {
      secrets = parseSecrets(secretsOfText(readFileSync(path, 'utf8')));
      log.info({ path, secrets: secrets.length }, 'webhook secrets read again');
    } catch (error) {
      const problem = error instanceof Error ? error.message : String(error);
      log.error({ path, problem }, 'webhook secrets not read: those before stay in force');
    }
    return secrets;
  };
}

function readFirst(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw new SecretsError([`their file cannot be read: ${(error as Error).message}`]);
  }
}

/** Inode too: a secret mounted by an orchestrator changes by a swapped link. Never throws: a delivery is being judged. */
function versionOfFile(path: string): string {
  try {
    const stat = statSync(path, { bigint: true });
    return `${stat.ino}/${stat.size}/${stat.mtimeNs}`;
  } catch (error) {
    return String((error as NodeJS.ErrnoException).code);
  }
}
