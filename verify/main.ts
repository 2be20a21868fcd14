/**
 * `npm run verify`: checks that everything generated equals what the code makes now. It changes nothing,
 * unless `--write` generates the pages of docs/ again.
 */
import { execFile } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { promisify } from 'node:util';
import { connectWarehouse, type Database } from '../db/connection/connect.ts';
import { migrateWarehouse } from '../db/migrate/migrate.ts';
import { startEmbedded } from '../embedded/start.ts';
import { alertRules, operatorRules, runbooksPage } from './alerts-pages.ts';
import { dictionaryPage } from './dictionary-page.ts';
import { failuresPage } from './failures-page.ts';
import { verifyLock } from './lock.ts';
import { metricsPage } from './metrics-page.ts';
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

/**
 * Lets drizzle-kit write the next migration next to a copy of the existing ones. If it writes one, the schema
 * was changed without a migration.
 */
async function verifyMigrations(project: string): Promise<string[]> {
  mkdirSync(join(project, '.metersync'), { recursive: true });
  const folder = mkdtempSync(join(project, '.metersync', 'verify-'));
  try {
    const copy = join(folder, 'migrations');
    cpSync(join(project, 'db/migrations'), copy, { recursive: true });
    const before = readdirSync(copy);
    // drizzle-kit takes every path as relative to its working folder, even an absolute one.
    const config = { out: relative(project, copy) };
    const configFile = join(folder, 'drizzle.config.ts');
    writeFileSync(
      configFile,
      `import config from '../../drizzle.config.ts';\nexport default { ...config, ...${JSON.stringify(config)} };\n`,
    );
    const drizzleKit = join(project, 'node_modules/.bin/drizzle-kit');
    await promisify(execFile)(drizzleKit, ['generate', '--config', configFile], { cwd: project });
    return readdirSync(copy)
      .filter((name) => !before.includes(name))
      .flatMap((name) => ['npx drizzle-kit generate would write:', ...statements(join(copy, name))]);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const statements = (file: string): string[] => readFileSync(file, 'utf8').trim().split('\n');

const source = 'analytics/checks/ops.data_issue_checks.sql';

/** Makes contract/check-names.ts: the names of the checks, for settings and commands. */
function checkNamesFile(project: string): string {
  const sql = readFileSync(join(project, source), 'utf8');
  // The first value of each row; the second is the kind of data that the check is about.
  const names = [...sql.matchAll(/\(\s*'(\w+)',\s*'(?:bills|connections|intervals|fields)',/g)].map(
    ([, name]) => `  '${name}',\n`,
  );
  return `// Generated from ${source}: change it there, then run "npm run verify -- --write".
export const checkNames = [
${names.join('')}] as const;
export type CheckName = (typeof checkNames)[number];
`;
}

/** Runs work on a newly migrated warehouse, which is dropped afterwards. */
async function withMigratedWarehouse<T>(work: (db: Database) => Promise<T>): Promise<T> {
  const dir = await mkdtemp(join(tmpdir(), 'metersync-verify-'));
  try {
    const stack = await startEmbedded({ dir, postgres: true, temporal: false });
    try {
      const url = (await stack.postgres?.ensureDatabase('warehouse')) ?? '';
      const warehouse = connectWarehouse({ url, timeZone: 'UTC', max: 1, onError: () => {} });
      try {
        await migrateWarehouse(warehouse.db);
        return await work(warehouse.db);
      } finally {
        await warehouse.close();
      }
    } finally {
      await stack.stop();
    }
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}

const wrong: string[] = [];
for (const [name, check] of Object.entries(checks(process.argv.includes('--write')))) {
  const problems = await check().catch((error: Error) => [error.message]);
  console.log(`${problems.length === 0 ? 'ok   ' : 'WRONG'}  ${name}`);
  for (const problem of problems) console.log(`       ${problem}`);
  wrong.push(...problems);
}
process.exitCode = wrong.length === 0 ? 0 : 1;
