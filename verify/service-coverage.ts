import { join } from 'node:path';
import { readCoverage } from '../test/sandbox/coverage.ts';
import { statements } from '../test/sandbox/statements.ts';

/** Checks that every statement of the service's document has a test and that titles name no other. */
export async function verifyServiceCoverage(project: string): Promise<string[]> {
  const { missing, unknown } = await readCoverage(join(project, 'test'));
  return [
    ...missing.map((id) => `no test has "seed ${id}: …" for its title: ${statements[id]}`),
    ...unknown.map((id) => `a test has "seed ${id}: …" for its title, and there is no such statement`),
  ];
}
