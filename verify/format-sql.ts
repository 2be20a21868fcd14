/**
 * Formats every .sql file; `--check` changes nothing and fails where a file would change. No line of those
 * that may change, unlike migrations, is wider than 100 columns: comments and literals are broken by hand.
 */
import { globSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { formatSqlFile } from './sql-style.ts';

const widest = 100;
const project = join(import.meta.dirname, '..');
const files = globSync('{analytics,db,docker,sandbox}/**/*.sql', { cwd: project }).sort();
const check = process.argv.includes('--check');

const wrong = files.filter((file) => {
  const path = join(project, file);
  const text = readFileSync(path, 'utf8');
  const formatted = formatSqlFile(text);
  if (formatted === text) return false;
  if (!check) writeFileSync(path, formatted);
  return true;
});
for (const file of wrong) console.log(`${check ? 'not formatted' : 'formatted'}: ${file}`);
if (check && wrong.length > 0) {
  console.log('npm run format');
  process.exitCode = 1;
}

const tooWide = globSync('{analytics,dbt,docker,sandbox}/**/*.sql', { cwd: project })
  .sort()
  .flatMap((file) => {
    const lines = readFileSync(join(project, file), 'utf8').split('\n');
    return lines.flatMap((line, at) => (line.length > widest ? [`${file}:${at + 1}`] : []));
  });
for (const place of tooWide) console.log(`wider than ${widest} columns: ${place}`);
if (tooWide.length > 0) process.exitCode = 1;
