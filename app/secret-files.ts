import { closeSync, constants, fstatSync, openSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** Variables that hold secrets. A file of one line may hold each instead. */
export const secretVariables = [
  'SERVICE_API_KEY',
  'DATABASE_URL',
  'TEMPORAL_API_KEY',
  'TEMPORAL_CODEC_KEYS',
  'NOTIFY_URL',
  'NOTIFY_SECRET',
  'HEARTBEAT_URL',
] as const;

/**
 * Sets each secret `NAME` to the line of its file: the one that `NAME_FILE` names, or `NAME` in the folder
 * `SECRETS_DIR`. Empty variables count as unset.
 * @returns the variables that are set, and what is wrong with files, without quoting any. `idle` says of each
 * other file in the folder that it sets nothing, unless a variable or `TEMPORAL_CONFIG_FILE` names it.
 */
export function readSecretFiles(
  env: Readonly<Record<string, string | undefined>>,
  names: readonly string[] = secretVariables,
): {
  readonly given: Record<string, string>;
  readonly problems: readonly string[];
  readonly idle: readonly string[];
} {
  const given = Object.fromEntries(
    Object.entries(env).filter(
      (entry): entry is [string, string] => entry[1] !== undefined && entry[1] !== '',
    ),
  );
  const { SECRETS_DIR: folder } = given;
  const files = folder === undefined ? [] : namesIn(folder);
  if ('problem' in files)
    return { given, problems: [`SECRETS_DIR has to name a folder: ${folder} ${files.problem}`], idle: [] };
  const named = files.length === 0 ? [] : [...Object.values(given), textOf(given.TEMPORAL_CONFIG_FILE)];
  // Kubernetes keeps what it mounts in names that begin with a dot.
  const idle = files
    .filter((name) => !names.includes(name) && !name.startsWith('.'))
    .map((name) => join(folder ?? '', name))
    .filter((path) => !named.some((value) => value.includes(path)))
    .map((path) => `${path} sets nothing: SECRETS_DIR may hold ${names.join(', ')}`);
  const problems = names.flatMap((name) => {
    const variables = [name, `${name}_FILE`].filter((variable) => given[variable] !== undefined);
    const own = folder !== undefined && files.includes(name) ? [join(folder, name)] : [];
    const [place, another] = [...variables, ...own];
    if (place !== undefined && another !== undefined) return [setTwice(place, another)];
    if (place === undefined || place === name) return [];
    const path = given[place] ?? place;
    delete given[place];
    const read = readLine(path);
    if ('problem' in read) {
      const hasTo = place === path ? `${name} has to be` : `${place} has to name`;
      return [`${hasTo} a file of one line: ${path} ${read.problem}`];
    }
    given[name] = read.line;
    return [];
  });
  return { given, problems, idle };
}

/** Reads a file; '' if that fails, as whoever uses it says so. */
function textOf(path: string | undefined): string {
  try {
    return path === undefined ? '' : readSecretFile(path);
  } catch {
    return '';
  }
}

export const setTwice = (name: string, another: string): string =>
  `${name} and ${another} are both set: remove one of them`;

interface Problem {
  readonly problem: string;
}

/** Lists the names in a folder. A link that leads nowhere is among them: its secret is not merely unset. */
function namesIn(folder: string): readonly string[] | Problem {
  try {
    return readdirSync(folder);
  } catch (error) {
    return unreadable(error);
  }
}

function unreadable(error: unknown): Problem {
  const { code, message } = error as NodeJS.ErrnoException;
  return { problem: code === 'ENOENT' ? 'is not there' : `cannot be read: ${code ?? message}` };
}

/**
 * Reads a file of secrets. A pipe is refused: opening one waits until somebody writes, which may be
 * for ever.
 */
export function readSecretFile(path: string): string {
  // A system without the flag has undefined here, which counts as 0.
  const file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const stats = fstatSync(file);
    if (!stats.isFile() && !stats.isDirectory()) throw new Error('it is a pipe or a device, not a file');
    return readFileSync(file, 'utf8');
  } finally {
    closeSync(file);
  }
}

function readLine(path: string): { readonly line: string } | Problem {
  let text: string;
  try {
    text = readSecretFile(path);
  } catch (error) {
    return unreadable(error);
  }
  const line = text.replace(/\r?\n$/, '');
  if (line === '') return { problem: 'is empty' };
  return /[\r\n]/.test(line) ? { problem: 'has several' } : { line };
}
