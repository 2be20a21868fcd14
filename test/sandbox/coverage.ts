import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { statements } from './statements.ts';

export interface Coverage {
  /** Statements without a test. */
  readonly missing: readonly string[];
  /** Statements that titles name and the document doesn't have. */
  readonly unknown: readonly string[];
  /** docs/service-coverage.md */
  readonly markdown: string;
}

/** A title names what it proves: `seed 6.2 row 3, 6.3.2: …`. */
const title = /(['"`])seed ([0-9][0-9., row]*): (.*?)(?<!\\)\1/g;

/** Which statement of the service's document is proven by which test below a folder. */
export async function readCoverage(folder: string): Promise<Coverage> {
  const proofs = new Map<string, string[]>();
  for (const file of (await readdir(folder, { recursive: true }))
    .filter((name) => name.endsWith('.test.ts'))
    .sort()) {
    const source = await readFile(join(folder, file), 'utf8');
    for (const [, , ids = '', words = ''] of source.matchAll(title)) {
      for (const id of ids.split(',').map((one) => one.trim())) {
        proofs.set(id, [...(proofs.get(id) ?? []), `${words} (${file})`]);
      }
    }
  }
  const known = Object.keys(statements);
  return {
    missing: known.filter((id) => !proofs.has(id)),
    unknown: [...proofs.keys()].filter((id) => !known.some((one) => one === id || isOfSection(one, id))),
    markdown: render(proofs),
  };
}

/** A title may name a section, beside its statements. */
const isOfSection = (id: string, section: string): boolean =>
  id.startsWith(`${section} `) || id.startsWith(`${section}.`);

function render(proofs: ReadonlyMap<string, readonly string[]>): string {
  const rows = Object.entries(statements).map(([id, words]) => {
    const tests = (proofs.get(id) ?? ['none']).map((one) => one.replaceAll('|', '\\|'));
    return `| ${id} | ${words} | ${tests.join('<br>')} |`;
  });
  return [
    '# What proves the service',
    '',
    'Made from the titles of the tests; each statement and table row of the service’s document has at least one.',
    '',
    '| statement | what it says | proven by |',
    '|---|---|---|',
    ...rows,
    '',
  ].join('\n');
}
