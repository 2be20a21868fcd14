import { createHmac, randomBytes, type ScryptOptions, scrypt, timingSafeEqual } from 'node:crypto';
import { stat } from 'node:fs/promises';
import { promisify } from 'node:util';
import PQueue from 'p-queue';
import type { Logger } from 'pino';
import { readSecretFile } from '../app/settings/secret-files.ts';
import { consoleBounds } from '../contract/limits.ts';
import { type OperatorRole, operatorRoles } from '../contract/names.ts';
import { consolePolicy } from '../contract/retry-policy.ts';
import type { Identity } from './identity.ts';

const derive = promisify<string, Buffer, number, ScryptOptions, Buffer>(scrypt);

/** 32 MiB and some 80 ms for each check. */
const cost = { N: 2 ** 15, r: 8, p: 1, maxmem: 64 * 1024 * 1024 } as const;
const keyBytes = 32;

/** Makes the line of a file of passwords: `name:role:scrypt$salt$key`, both in base64. */
export async function passwordLine(name: string, role: OperatorRole, password: string): Promise<string> {
  const salt = randomBytes(16);
  const key = await derive(password, salt, keyBytes, cost);
  return `${name}:${role}:scrypt$${salt.toString('base64')}$${key.toString('base64')}`;
}

interface Person extends Identity {
  readonly salt: Buffer;
  readonly key: Buffer;
}

const line = /^([^:\p{Cc}]{1,200}):(\w+):scrypt\$([a-z0-9+/=]{8,100})\$([a-z0-9+/]{43}=)$/iu;

/**
 * Parses a password file.
 * @throws Error that names the wrong lines without quoting any
 */
export function parsePasswords(text: string): ReadonlyMap<string, Person> {
  const people = new Map<string, Person>();
  const wrong: number[] = [];
  for (const [place, raw] of text.split('\n').entries()) {
    if (raw.trim() === '' || raw.startsWith('#')) continue;
    const [, name = '', role = '', salt = '', key = ''] = line.exec(raw.trim()) ?? [];
    if (name === '' || !isRole(role) || people.has(name)) wrong.push(place + 1);
    else people.set(name, { name, role, salt: Buffer.from(salt, 'base64'), key: Buffer.from(key, 'base64') });
  }
  if (wrong.length > 0)
    throw new Error(
      `line ${wrong.join(', ')}: has to be name:viewer:scrypt… or name:operator:scrypt…, each name once, as metersync console password prints it`,
    );
  return people;
}

const isRole = (text: string): text is OperatorRole => (operatorRoles as readonly string[]).includes(text);

export interface Passwords {
  /** Returns who it is; undefined for a wrong name or password. */
  check(name: string, password: string): Promise<Identity | 'busy' | undefined>;
}

/** Reads a file, and what changes when it does. */
interface PasswordFile {
  text(): Promise<string>;
  version(): Promise<string>;
}

/**
 * Opens a password file, which is read again when it changes. While it cannot be read, or is wrong, nobody
 * can sign in.
 * @throws Error if it cannot be read or is wrong now
 */
export async function openPasswords(
  path: string,
  log: Pick<Logger, 'error' | 'info'>,
  now: () => number = () => performance.now(),
  file: PasswordFile = fileAt(path),
): Promise<Passwords> {
  // Before its text: a change between the two is found by the next look.
  let readAs: string | undefined = await file.version();
  let people = await readPeople(path, file);
  let lookedAt = now();
  let problem: string | undefined;
  /** Users who proved their password with this file, so that not each request costs a check. */
  const proved = new Map<string, Identity>();
  const secret = randomBytes(32);
  const queue = new PQueue({ concurrency: consoleBounds.passwordChecksAtOnce });
  const look = async (): Promise<void> => {
    if (now() - lookedAt < consolePolicy.passwordsCheckMs) return;
    lookedAt = now();
    const version = await file.version();
    if (version === readAs) return;
    readAs = version;
    const read = await readPeople(path, file).catch((error: Error) => error);
    // A later look may have been faster.
    if (readAs !== version) return;
    people = read instanceof Error ? new Map() : read;
    // Together with `people`: a check that began before proves nothing after.
    proved.clear();
    const before = problem;
    problem = read instanceof Error ? read.message : undefined;
    if (!(read instanceof Error)) return log.info('CONSOLE_PASSWORDS_FILE was read again');
    // What the file holds is judged once. That it cannot be read may pass, so it is tried again.
    if ((read.cause as NodeJS.ErrnoException).code !== undefined) readAs = undefined;
    if (problem !== before) log.error(`${problem}, so nobody can sign in to the console`);
  };
  return {
    check: async (name, password) => {
      await look();
      const mark = createHmac('sha256', secret).update(`${name}\0${password}`).digest('base64');
      const known = proved.get(mark);
      if (known !== undefined) return known;
      if (queue.size >= consoleBounds.passwordChecksWaiting) return 'busy';
      const asked = people;
      const found = await queue.add(() => prove(asked.get(name), password));
      // The file may have changed during the check.
      if (found !== undefined && asked === people) proved.set(mark, found);
      return found;
    },
  };
}

const nobody: Pick<Person, 'salt' | 'key'> = { salt: randomBytes(16), key: randomBytes(keyBytes) };

/** Takes as long for a name that does not exist. */
async function prove(person: Person | undefined, password: string): Promise<Identity | undefined> {
  const { salt, key } = person ?? nobody;
  const given = await derive(password, salt, keyBytes, cost);
  if (!timingSafeEqual(given, key) || person === undefined) return undefined;
  return { name: person.name, role: person.role };
}

async function readPeople(path: string, file: PasswordFile): Promise<ReadonlyMap<string, Person>> {
  try {
    return parsePasswords(await file.text());
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    throw new Error(
      `CONSOLE_PASSWORDS_FILE ${path}: ${code === undefined ? message : `cannot be read (${code})`}`,
      {
        cause: error,
      },
    );
  }
}

const fileAt = (path: string): PasswordFile => ({
  text: async () => readSecretFile(path),
  version: async () => {
    try {
      const { mtimeMs, ctimeMs, size, ino } = await stat(path);
      return `${mtimeMs} ${ctimeMs} ${size} ${ino}`;
    } catch {
      return 'absent';
    }
  },
});
