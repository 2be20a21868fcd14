/**
 * `npm run verify`: checks that everything generated is as the code makes it now. It changes nothing in the
 * tree, unless `--write` generates the pages of docs/ again.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { commandPage } from './command-page.ts';
import { describeDictionary } from './dictionary-page.ts';
import { failuresPage } from './failures-page.ts';
import { hostileInputsPage, verifyHostileInputs } from './hostile-inputs.ts';
import { verifyLock } from './lock.ts';
import { replaceGenerated } from './markdown.ts';
import { verifyMigrations } from './migrations.ts';
import { performancePage } from './performance-page.ts';
import { serviceCoveragePage, verifyServiceCoverage, verifyStatements } from './service-coverage.ts';
import { settingsPage } from './settings-page.ts';
import { describeWarehouse, withMigratedWarehouse } from './warehouse-page.ts';

const project = join(import.meta.dirname, '..');

/** A check returns its problems in lines for people; none when all is well. */
type Check = () => Promise<readonly string[]>;

/** The references of a migrated warehouse, which both pages share. */
const references = withMigratedWarehouse(async (db) => ({
  warehouse: await describeWarehouse(db),
  dictionary: await describeDictionary(db),
}));
// The pages await this and report its error.
references.catch(() => {});

/** Pages of docs/ that are made from the code, each by a function of its present text. */
const pages: Readonly<Record<string, (text: string) => string | Promise<string>>> = {
  'docs/failures.md': failuresPage,
  'docs/settings.md': settingsPage,
  'docs/command.md': commandPage,
  'docs/warehouse.md': async (text) => replaceGenerated(text, (await references).warehouse),
  'docs/dictionary.md': async (text) => replaceGenerated(text, (await references).dictionary),
  'docs/performance.md': (text) => performancePage(text),
  'docs/hostile-inputs.md': () => hostileInputsPage(project),
  'docs/service-coverage.md': () => serviceCoveragePage(project),
};

function pageCheck(path: string, make: (text: string) => string | Promise<string>, write: boolean): Check {
  return async () => {
    const file = join(project, path);
    const text = existsSync(file) ? readFileSync(file, 'utf8') : '';
    const made = await make(text);
    if (made === text) return [];
    if (!write) return ['it is not as the code makes it: npm run verify -- --write'];
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
    "each statement of the service's document has a test": () => verifyServiceCoverage(project),
    'each row of the table of hostile inputs has a test': () => verifyHostileInputs(project),
    "test/sandbox/statements.ts has each statement of the service's document": () =>
      verifyStatements(project),
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
