import { readFile } from 'node:fs/promises';
import { text } from 'node:stream/consumers';
import { canonicalUuid } from '../contract/ids.ts';
import { UsageError } from './errors.ts';

/**
 * Reads company ids from a file, or from standard input for `-`: one on each line, in any spelling. Removes
 * duplicates.
 * @throws UsageError when a line is not a UUID, or there is no id
 */
export async function readCompanyIds(file: string): Promise<string[]> {
  const from = file === '-' ? 'standard input' : file;
  const ids = new Set<string>();
  for (const [at, line] of (await contentOf(file)).split('\n').entries()) {
    const given = line.trim();
    if (given === '') continue;
    const id = canonicalUuid(given);
    if (id === undefined)
      throw new UsageError(`${from}, line ${at + 1}: '${given.slice(0, 60)}' is not a UUID`);
    ids.add(id);
  }
  if (ids.size === 0) throw new UsageError(`${from} names no company`);
  return [...ids];
}

async function contentOf(file: string): Promise<string> {
  if (file === '-') return await text(process.stdin);
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    throw new UsageError(`${file} cannot be read: ${(error as Error).message}`);
  }
}
