import { join } from 'node:path';
import { readHostileCoverage } from '../test/receiver/hostile-coverage.ts';
import { hostileInputs } from '../test/receiver/hostile-inputs.ts';
import { generatedFrom, markdownTable } from './markdown.ts';

/**
 * Makes docs/hostile-inputs.md: hostile inputs to a receiver, their answers, and the tests that prove them.
 */
export async function hostileInputsPage(project: string): Promise<string> {
  const proofs = await readHostileCoverage(join(project, 'test'));
  const rows = Object.entries(hostileInputs).map(([row, [input, answer]]) => [
    row,
    input,
    answer,
    filesOf(proofs.get(Number(row)) ?? []),
  ]);
  return [
    generatedFrom('test/receiver/hostile-inputs.ts and the titles of the tests'),
    '# Hostile inputs to the receiver',
    '',
    'Whoever finds the address of the receiver can send it anything. What is not verified is refused and leaves nothing behind but a count;',
    'what is verified and cannot be used is taken, and kept with its bytes and a reason (`dead`), as refusing it would bring it again eight',
    'times and have the endpoint disabled in the end. Titles of the tests begin with the row that they prove.',
    '',
    markdownTable(['Row', 'Input', 'Answer', 'Tests'], rows),
    '',
  ].join('\n');
}

/** Checks that every row has a test and that titles name no other row. */
export async function verifyHostileInputs(project: string): Promise<string[]> {
  const proofs = await readHostileCoverage(join(project, 'test'));
  const rows = Object.keys(hostileInputs).map(Number);
  return [
    ...rows
      .filter((row) => !proofs.has(row))
      .map((row) => `no test has "${row}: …" for its title: ${hostileInputs[row]?.[0]}`),
    ...[...proofs.keys()]
      .filter((row) => !rows.includes(row))
      .map((row) => `a test has "${row}: …" for its title, and there is no such row`),
  ];
}

/** Lists files with the number of their tests. */
function filesOf(proofs: readonly string[]): string {
  const counts = new Map<string, number>();
  for (const proof of proofs) {
    const file = /\(([^()]+)\)$/.exec(proof)?.[1] ?? '';
    counts.set(file, (counts.get(file) ?? 0) + 1);
  }
  return [...counts].map(([file, n]) => `${file}${n === 1 ? '' : ` (${n})`}`).join(', ');
}
