import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { statements } from './statements.ts';

export interface Coverage {
  /** Statements without a test. */
  readonly missing: readonly string[];
  /** Statements that titles name and the document lacks. */
  readonly unknown: readonly string[];
}

/** A title names what it proves: `seed 6.2 row 3, 6.3.2: …`. */
const title = /(['"`])seed ([0-9][0-9., row]*): (.*?)(?<!\\)\1/g;

/** Compares the titles of the tests below a folder with the statements of the service's document. */
export async function readCoverage(folder: string): Promise<Coverage> {
  const proven = new Set<string>();
  for (const file of (await readdir(folder, { recursive: true }))
    .filter((name) => name.endsWith('.test.ts'))
    .sort()) {
    const source = await readFile(join(folder, file), 'utf8');
    for (const [, , ids = ''] of source.matchAll(title))
      for (const id of ids.split(',')) proven.add(id.trim());
  }
  const known = Object.keys(statements);
  return {
    missing: known.filter((id) => !proven.has(id)),
    unknown: [...proven].filter((id) => !known.some((one) => one === id || isOfSection(one, id))),
  };
}

/** A title may name a section, beside its statements. */
const isOfSection = (id: string, section: string): boolean =>
  id.startsWith(`${section} `) || id.startsWith(`${section}.`);
