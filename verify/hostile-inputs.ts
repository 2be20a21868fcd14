import { join } from 'node:path';
import { readHostileCoverage } from '../test/receiver/hostile-coverage.ts';
import { hostileInputs } from '../test/receiver/hostile-inputs.ts';
import { generatedFrom } from './markdown.ts';

/**
 * Makes docs/reference/hostile-inputs.md: hostile inputs to a receiver, and their answers.
 */
export function hostileInputsPage(): string {
  const lines = Object.entries(hostileInputs).map(
    ([row, [input, answer]]) => `${row}. ${input}: **${answer}**`,
  );
  return [
    generatedFrom('test/receiver/hostile-inputs.ts'),
    '# Hostile inputs to the receiver',
    '',
    'What is verified and cannot be used is kept as `dead` with its bytes: refused, it would come again',
    'and have the endpoint disabled. Titles of tests begin with the number that they prove.',
    '',
    ...lines,
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
