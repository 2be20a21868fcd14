import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { promisify } from 'node:util';

/**
 * Lets drizzle-kit write the next migration next to a copy of the existing ones. If it writes one, the schema
 * was changed without a migration.
 */
export async function verifyMigrations(project: string): Promise<string[]> {
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
