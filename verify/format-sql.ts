/**
 * Formats the .sql files of analytics/ and docker/. Migrations are left out, because their released text must
 * not change. With `--check`, nothing is written, and the status is 1 if a file is not formatted.
 */
import { globSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { format } from 'sql-formatter';

const project = join(import.meta.dirname, '..');
const check = process.argv.includes('--check');

/**
 * Matches comments and literals. Postgres accepts a literal in several parts only if each is on a line of its
 * own. The formatter would put them on one line, so they are joined before.
 */
const commentOrLiteral = /--.*$|'(?:[^']|'')*'(?:\s*\n\s*'(?:[^']|'')*')*|\$(\w*)\$[\s\S]*?\$\1\$/gm;
const joined = (sql: string): string =>
  sql.replace(commentOrLiteral, (token) =>
    token.startsWith("'") ? token.replace(/(?<!')((?:'')*)'\s*\n\s*'/g, '$1') : token,
  );

const wrong = globSync('{analytics,docker}/**/*.sql', { cwd: project })
  .sort()
  .filter((file) => {
    const path = join(project, file);
    const text = readFileSync(path, 'utf8');
    const formatted = `${format(joined(text), {
      language: 'postgresql',
      keywordCase: 'lower',
      dataTypeCase: 'lower',
      expressionWidth: 80,
      linesBetweenQueries: 0,
      paramTypes: { custom: [{ regex: String.raw`\{\{.*?\}\}\w*` }] },
    })}\n`;
    if (formatted !== text && !check) writeFileSync(path, formatted);
    return formatted !== text;
  });
for (const file of wrong)
  console.log(check ? `not formatted (npm run format): ${file}` : `formatted: ${file}`);
if (check && wrong.length > 0) process.exitCode = 1;
