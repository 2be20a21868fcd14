import { closeSync, constants, fstatSync, openSync, readFileSync } from 'node:fs';

/** Variables that hold secrets. A file of one line may hold the secret instead. */
export const secretVariables = [
  'SERVICE_API_KEY',
  'DATABASE_URL',
  'TEMPORAL_API_KEY',
  'TEMPORAL_CODEC_KEYS',
  'NOTIFY_URL',
  'NOTIFY_SECRET',
  'HEARTBEAT_URL',
] as const;

/** Secrets without which metersync runs. As an empty variable does, an empty file means that one is not set. */
export const optionalSecrets: readonly string[] = ['NOTIFY_URL', 'NOTIFY_SECRET', 'HEARTBEAT_URL'];

/**
 * Sets each secret `NAME` to the line of the file that `NAME_FILE` names. Empty variables count as unset.
 * @returns the variables that are set, and what is wrong with files, without quoting any
 */
export function readSecretFiles(
  env: Readonly<Record<string, string | undefined>>,
  names: readonly string[] = secretVariables,
): { readonly given: Record<string, string>; readonly problems: readonly string[] } {
  const given = Object.fromEntries(
    Object.entries(env).filter(
      (entry): entry is [string, string] => entry[1] !== undefined && entry[1] !== '',
    ),
  );
  const problems = names.flatMap((name) => {
    const variable = `${name}_FILE`;
    const path = given[variable];
    if (path === undefined) return [];
    const read = readLine(path);
    const isUnset = read === empty && optionalSecrets.includes(name);
    if (given[name] !== undefined && !isUnset) return [setTwice(name, variable)];
    delete given[variable];
    if (isUnset) return [];
    if ('problem' in read) return [`${variable} has to name a file of one line: ${path} ${read.problem}`];
    given[name] = read.line;
    return [];
  });
  return { given, problems };
}

export const setTwice = (name: string, another: string): string =>
  `${name} and ${another} are both set: remove one of them`;

interface Problem {
  readonly problem: string;
}

const empty: Problem = { problem: 'is empty' };

/** Says why a file that a person named was not read, after the file's name. */
export function unreadableFile(error: unknown): Problem {
  const { code, message } = error as NodeJS.ErrnoException;
  return { problem: code === 'ENOENT' ? 'is not there' : `cannot be read: ${code ?? message}` };
}

/** Reads a file of secrets. Refuses a pipe: opening it waits until somebody writes, perhaps forever. */
function readSecretFile(path: string): string {
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
    return unreadableFile(error);
  }
  const line = text.replace(/\r?\n$/, '');
  if (line === '') return empty;
  return /[\r\n]/.test(line) ? { problem: 'has several lines' } : { line };
}
