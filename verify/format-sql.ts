/**
 * Formats every .sql file; `--check` changes nothing and fails where a file would change.
 */
import { globSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { formatSqlFile } from './sql-style.ts';

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
