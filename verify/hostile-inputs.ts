import { join } from 'node:path';
import { readHostileCoverage } from '../test/receiver/hostile-coverage.ts';
import { hostileInputs } from '../test/receiver/hostile-inputs.ts';

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
