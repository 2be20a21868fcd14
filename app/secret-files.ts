import { readFileSync } from 'node:fs';

/** Variables that hold secrets. `NAME_FILE` may name a file of one line instead. */
export const secretVariables = [
  'SERVICE_API_KEY',
  'DATABASE_URL',
  'TEMPORAL_API_KEY',
  'TEMPORAL_CODEC_KEYS',
  'NOTIFY_URLS',
  'NOTIFY_SECRET',
  'HEARTBEAT_URL',
] as const;

/**
 * Replaces each `NAME_FILE` of a secret by `NAME` with the line of that file. Empty variables count as unset.
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
    const { [`${name}_FILE`]: path, [name]: value } = given;
    if (path === undefined) return [];
    if (value !== undefined) return [setTwice(name)];
    delete given[`${name}_FILE`];
    const read = readLine(path);
    if ('problem' in read) return [`${name}_FILE has to name a file of one line: ${path} ${read.problem}`];
    given[name] = read.line;
    return [];
  });
  return { given, problems };
}

export const setTwice = (name: string): string => `${name} and ${name}_FILE are both set: remove one of them`;

function readLine(path: string): { readonly line: string } | { readonly problem: string } {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    return { problem: code === 'ENOENT' ? 'is not there' : `cannot be read: ${code}` };
  }
  const line = text.replace(/\r?\n$/, '');
  if (line === '') return { problem: 'is empty' };
  return /[\r\n]/.test(line) ? { problem: 'has several' } : { line };
}
