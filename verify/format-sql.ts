/**
 * Formats every .sql file, including the bodies of SQL functions. `--check` changes nothing and fails if a
 * file would change.
 */
import { globSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { format } from 'sql-formatter';

const project = join(import.meta.dirname, '..');
const files = globSync('{analytics,db,docker,sandbox}/**/*.sql', { cwd: project }).sort();
const check = process.argv.includes('--check');

/** Formats statements, and bodies of SQL functions between $$ and $$; those in PL/pgSQL stay unchanged. */
export function formatFile(text: string): string {
  const bodies: string[] = [];
  const held = text.replace(/\$(\w*)\$\n([\s\S]*?)\n\s*\$\1\$/g, (match, tag: string, body: string) => {
    const sql = !/^\s*(declare|begin)\b/im.test(
      body
        .replace(/^\s*--.*$/gm, '')
        .trimStart()
        .slice(0, 40),
    );
    bodies.push(sql ? `$${tag}$\n${indented(formatSql(body))}\n$${tag}$` : match);
    return `'@body${bodies.length - 1}@'`;
  });
  return `${formatSql(held).replace(/'@body(\d+)@'/g, (_, at: string) => bodies[Number(at)] ?? '')}\n`;
}

const indented = (text: string): string => text.replace(/^(?=.)/gm, '  ');

function formatSql(text: string): string {
  return format(text, {
    language: 'postgresql',
    keywordCase: 'lower',
    dataTypeCase: 'lower',
    tabWidth: 2,
    expressionWidth: 80,
    linesBetweenQueries: 1,
    paramTypes: { custom: [{ regex: String.raw`\{\{.*?\}\}` }] },
  })
    .replace(/^set\s+(\w+ = )/gm, 'set $1')
    .replace(callOrText, (match, before?: string) =>
      before === undefined || spaced.has(before) ? match : `${before}(`,
    )
    .replace(/(preceding|following|current row)\s+and /g, '$1 and ');
}

/** Matches a word before a parenthesis; also texts and comments, which come first and stay unchanged. */
const callOrText = /'(?:[^']|'')*'|--.*$|\b([\w.]+) \((?!$)/gm;
/** Words before a parenthesis that are no function. */
const spaced = new Set(
  'in as over filter values on and or not when then else by exists any all lateral using from join select where table unique check key group range is distinct limit union'.split(
    ' ',
  ),
);
const wrong = files.filter((file) => {
  const path = join(project, file);
  const text = readFileSync(path, 'utf8');
  const formatted = formatFile(text);
  if (formatted === text) return false;
  if (!check) writeFileSync(path, formatted);
  return true;
});
for (const file of wrong) console.log(`${check ? 'not formatted' : 'formatted'}: ${file}`);
if (check && wrong.length > 0) {
  console.log('npm run format');
  process.exitCode = 1;
}
