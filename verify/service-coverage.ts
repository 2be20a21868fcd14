import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { readCoverage } from '../test/sandbox/coverage.ts';
import { statements } from '../test/sandbox/statements.ts';
import { differencesFromDocument } from './service-document.ts';

/** Checks that every statement of the service's document has a test and that titles name no other. */
export async function verifyServiceCoverage(project: string): Promise<string[]> {
  const { missing, unknown } = await readCoverage(join(project, 'test'));
  return [
    ...missing.map((id) => `no test has "seed ${id}: …" for its title: ${statements[id]}`),
    ...unknown.map((id) => `a test has "seed ${id}: …" for its title, and there is no such statement`),
  ];
}

/** Checks that the list of statements is complete, if the document lies beside the checkout. */
export async function verifyStatements(project: string): Promise<string[]> {
  const document = join(project, '../shared/utility-data-service.md');
  if (!existsSync(document)) return [];
  return differencesFromDocument(readFileSync(document, 'utf8'), Object.keys(statements));
}
