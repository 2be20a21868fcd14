/**
 * `npm run verify`: checks that everything generated equals what the code makes now. It changes nothing,
 * unless `--write` generates the pages of docs/ again.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { alertRules, operatorRules, runbooksPage } from './alerts-pages.ts';
import { checkNamesFile } from './check-names.ts';
import { dictionaryPage } from './dictionary-page.ts';
import { failuresPage } from './failures-page.ts';
import { verifyLock } from './lock.ts';
import { metricsPage } from './metrics-page.ts';
import { withMigratedWarehouse } from './migrated-warehouse.ts';
import { verifyMigrations } from './migrations.ts';
import { performancePage } from './performance-page.ts';
import { settingsPage } from './settings-page.ts';

const project = join(import.meta.dirname, '..');

/** Returns a line for each problem. */
type Check = () => Promise<readonly string[]>;

/** Generated files. The function of a file gets its current text and returns what it should be. */
const pages: Readonly<Record<string, (text: string) => string | Promise<string>>> = {
  'docs/reference/failures.md': failuresPage,
  'docs/reference/settings.md': settingsPage,
  'docs/reference/metrics.md': metricsPage,
  'docs/reference/dictionary.md': () => withMigratedWarehouse(dictionaryPage),
  'docs/runbooks.md': runbooksPage,
  'deploy/prometheus/rules.yml': alertRules,
  'deploy/kubernetes/overlays/prometheus-operator/rules.yaml': operatorRules,
  'contract/check-names.ts': () => checkNamesFile(project),
  'docs/performance.md': (text) => performancePage(text),
};

function pageCheck(path: string, make: (text: string) => string | Promise<string>, write: boolean): Check {
  return async () => {
    const file = join(project, path);
    const text = existsSync(file) ? readFileSync(file, 'utf8') : '';
    const made = await make(text);
    if (made === text) return [];
    if (!write) return ['it differs from what the code generates: npm run verify -- --write'];
    writeFileSync(file, made);
    return [];
  };
}

function checks(write: boolean): Readonly<Record<string, Check>> {
  const pageChecks = Object.entries(pages).map(
    ([path, make]) => [`${path} says what the code says`, pageCheck(path, make, write)] as const,
  );
  return {
    'db/migrations make the schema of db/schema': () => verifyMigrations(project),
    'package-lock.json is the lock of package.json': () => verifyLock(project),
    ...Object.fromEntries(pageChecks),
  };
}

const wrong: string[] = [];
for (const [name, check] of Object.entries(checks(process.argv.includes('--write')))) {
  const problems = await check().catch((error: Error) => [error.message]);
  console.log(`${problems.length === 0 ? 'ok   ' : 'WRONG'}  ${name}`);
  for (const problem of problems) console.log(`       ${problem}`);
  wrong.push(...problems);
}
process.exitCode = wrong.length === 0 ? 0 : 1;
