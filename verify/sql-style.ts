import { format } from 'sql-formatter';
import { layOut } from './sql-layout.ts';

/**
 * Formats the statements of a .sql file, and between $$ and $$ the bodies of functions in SQL. Bodies in
 * PL/pgSQL, string literals and comments stay unchanged.
 * @throws Error if more than whitespace would change
 */
export function formatSqlFile(text: string): string {
  const bodies: string[] = [];
  const literals: string[] = [];
  const held = text.replace(/\$(\w*)\$\n([\s\S]*?)\n\s*\$\1\$/g, (all, tag: string, body: string) => {
    const formatted = isProcedure(body)
      ? all
      : `$${tag}$\n${indented(formatStatements(body, literals))}\n$${tag}$`;
    bodies.push(formatted);
    return `'@body${bodies.length - 1}@'`;
  });
  const formatted = formatStatements(held, literals)
    .replace(/'@body(\d+)@'/g, (_, at: string) => bodies[Number(at)] ?? '')
    .replace(/^( *)(.*?)'@literal(\d+)-*@'/gm, (_, indent: string, before: string, at: string) => {
      const below = before === '' ? indent : `${indent}  `;
      return `${indent}${before}${(literals[Number(at)] ?? '').replace(/'\s*\n\s*'/g, `'\n${below}'`)}`;
    });
  const whole = `${formatted}\n`;
  if (words(whole) !== words(text)) throw new Error('formatting would change more than whitespace');
  return whole;
}

const words = (text: string): string => text.replace(/\s+/g, '').toLowerCase();

/** Whether a body is in PL/pgSQL. */
const isProcedure = (body: string): boolean =>
  /^(#|(declare|begin)\b)/i.test(body.replace(/^\s*--.*$/gm, '').trimStart());

const indented = (text: string): string => text.replace(/^(?=.)/gm, '  ');

/** Replaces each literal of several lines by a mark; the literals go to `literals`. */
function formatStatements(text: string, literals: string[]): string {
  const held = text.replace(commentOrLiteral, (token) => {
    if (!token.includes('\n')) return token;
    literals.push(token);
    return `'@literal${literals.length - 1}${literalOfParts.test(token) ? '-'.repeat(80) : ''}@'`;
  });
  const formatted = format(held, {
    language: 'postgresql',
    keywordCase: 'lower',
    dataTypeCase: 'lower',
    tabWidth: 2,
    expressionWidth: 80,
    linesBetweenQueries: 1,
    paramTypes: { custom: [{ regex: String.raw`\{\{.*?\}\}\w*` }] },
  })
    .replace(/^set\s+(\w+ = )/gm, 'set $1')
    .replace(callOrText, (token, before?: string) =>
      before === undefined || spaced.has(before) ? token : `${before}(`,
    )
    .replace(subscriptOrText, (token, at?: string) => (at === undefined ? token : `)[${at}]`))
    .replace(frameOrText, (token, edge?: string) => (edge === undefined ? token : `${edge} and `));
  return layOut(formatted);
}

/** Stands for a literal that goes on in the next line: as long as a line. */
const literalOfParts = /^'(?:[^']|'')*'\s*\n\s*'/;
const commentOrLiteral = /--.*$|'(?:[^']|'')*'(?:\s*\n\s*'(?:[^']|'')*')*|\$(\w*)\$[\s\S]*?\$\1\$/gm;
/** Matches the text before a parenthesis; literals and comments come first, as they stay unchanged. */
const callOrText = /'(?:[^']|'')*'|--.*$|\b([\w.]+) \((?!$)/gm;
const subscriptOrText = /'(?:[^']|'')*'|--.*$|\) \[(\d+)\]/gm;
const frameOrText = /'(?:[^']|'')*'|--.*$|\b(preceding|following|current row)\s+and /gm;
/** Words before a parenthesis that call nothing. */
const spaced = new Set(
  'in as over filter values on and or not when then else by exists any all lateral using from join select where table unique check key group range is distinct limit union'.split(
    ' ',
  ),
);
