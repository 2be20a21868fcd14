import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { statements } from './statements.ts';

export interface Coverage {
  /** Statements without a test. */
  readonly missing: readonly string[];
  /** Statements that titles name and the document lacks. */
  readonly unknown: readonly string[];
  /** Text of docs/reference/service-coverage.md. */
  readonly markdown: string;
}

/** A title names what it proves: `seed 6.2 row 3, 6.3.2: …`. */
const title = /(['"`])seed ([0-9][0-9., row]*): (.*?)(?<!\\)\1/g;

/** Finds the tests below a folder that prove each statement of the service's document. */
export async function readCoverage(folder: string): Promise<Coverage> {
  const proofs = new Map<string, Set<string>>();
  for (const file of (await readdir(folder, { recursive: true }))
    .filter((name) => name.endsWith('.test.ts'))
    .sort()) {
    const source = await readFile(join(folder, file), 'utf8');
    for (const [, , ids = ''] of source.matchAll(title)) {
      for (const id of ids.split(',').map((one) => one.trim())) {
        proofs.set(id, (proofs.get(id) ?? new Set()).add(file));
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

function render(proofs: ReadonlyMap<string, ReadonlySet<string>>): string {
  const pairs = Object.keys(statements).flatMap((id) =>
    [...(proofs.get(id) ?? [])].map((file) => ({ id, file })),
  );
  const lines = [...Map.groupBy(pairs, ({ file }) => file)].map(
    ([file, those]) => `- \`${file}\`: ${those.map(({ id }) => id.replace(' row ', ':')).join(', ')}`,
  );
  return [
    '# What proves the service',
    '',
    'The files below `test/` with tests of the sandbox, and the statements and rows of tables (`2.4:1`) of',
    'the service’s document that titles of theirs name (`seed 2.4 row 1: …`). Each has one.',
    '',
    ...lines.toSorted(),
    '',
  ].join('\n');
}
