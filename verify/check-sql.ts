/**
 * Checks that Postgres's own parser reads all SQL, and that no line of SQL has more than 100 columns: the .sql
 * files, and in the code each template `sql` that begins like a statement. A template may use fragments that
 * its own file defines. Any other value in it is read as a name, so that a statement which is assembled from
 * fragments of other files is refused.
 */
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseSync as parseCode, type TaggedTemplateExpression } from '@swc/core';
import { loadModule, parsePlPgSQLSync, parseSync } from 'libpg-query';
import { viewTexts } from '../db/migrate/apply-views.ts';

const project = join(import.meta.dirname, '..');
const columnsMax = 100;
const rooms = '{activities,app,cli,console,db,operations,sandbox}';
const isStatement = /^\s*(--.*\n\s*)*(with|select|insert|update|delete|merge|lock|create|alter|drop|set)\b/;
/** What a value is read as that depends on a condition: its first part, then its second. */
const branches = ['consequent', 'alternate'] as const;

await loadModule();
const problems = [
  ...read('{analytics,docker}/**/*.sql').flatMap(([file, text]) => tooWide(file, text)),
  ...read('{db,docker,sandbox}/**/*.sql').flatMap(([file, text]) => unreadable(file, text)),
  ...viewTexts(join(project, 'analytics')).flatMap((text) => unreadable('analytics/', text)),
  ...read(`${rooms}/**/*.ts`)
    .filter(([, text]) => text.includes('sql`'))
    .flatMap(([file, text]) => inCode(file, text)),
];
for (const problem of problems) console.log(problem);
process.exitCode = problems.length === 0 ? 0 : 1;

function read(pattern: string): [file: string, text: string][] {
  const files = globSync(pattern, { cwd: project }).sort();
  return files.map((file) => [file, readFileSync(join(project, file), 'utf8')]);
}

function tooWide(file: string, text: string): string[] {
  const wide = text.split('\n').filter((line) => line.length > columnsMax);
  return wide.map((line) => `${file}: more than ${columnsMax} columns: ${line.trim()}`);
}

function unreadable(where: string, text: string): string[] {
  try {
    const bytes = Buffer.from(text);
    for (const { stmt = {}, stmt_location: from = 0, stmt_len: length } of parseSync(text).stmts ?? []) {
      const one = bytes.subarray(from, length === undefined ? undefined : from + length).toString();
      if ('DoStmt' in stmt || /\blanguage plpgsql\b/i.test(one)) parsePlPgSQLSync(one);
    }
    return [];
  } catch (error) {
    return [`${where}: ${(error as Error).message} in ${text.trim()}`];
  }
}

function inCode(file: string, text: string): string[] {
  // swc counts bytes from where its last file ended, so the first character is a statement of its own.
  const bytes = Buffer.from(`;${text}`);
  const { body } = parseCode(bytes.toString(), { syntax: 'typescript' });
  const start = body[0]?.span.start ?? 0;
  const code = [...nodesOf(body)];
  const templates = code.filter(isTemplate);
  const fragments = new Map(code.flatMap(fragmentOf));
  const wide = templates.flatMap(({ span }) => {
    const from = bytes.lastIndexOf('\n', span.start - start) + 1;
    const lines = bytes.subarray(from, bytes.indexOf('\n', span.end - start)).toString();
    return lines.includes('\n') ? tooWide(file, lines) : [];
  });
  const wrong = templates.flatMap((template) =>
    branches.flatMap((branch) => {
      // A name may be a fragment in one function and a value in another; joined parts may be columns or selects.
      const readings = [fragments, new Map()].flatMap((known) =>
        ['x', '(select)'].map((joined) => written(template, { known, joined, branch })),
      );
      if (!isStatement.test(readings[0] ?? '')) return [];
      const [first = [], ...others] = readings.map((reading) => unreadable(file, reading));
      return others.some((problems) => problems.length === 0) ? [] : first;
    }),
  );
  return [...wide, ...new Set(wrong)];
}

interface Reading {
  /** The fragments of the file, by their names. */
  readonly known: ReadonlyMap<string, TaggedTemplateExpression>;
  /** What stands for parts that the code joins. */
  readonly joined: string;
  readonly branch: (typeof branches)[number];
}

/** The text of a template, with the fragments that it uses; `x` stands for any other value. */
function written({ template }: TaggedTemplateExpression, reading: Reading): string {
  const texts = template.quasis.map(({ cooked }) => cooked ?? '');
  return texts.reduce((before, text, at) => {
    const given = template.expressions[at - 1];
    const value = given?.type === 'ConditionalExpression' ? given[reading.branch] : given;
    const name = value?.type === 'CallExpression' ? value.callee : value;
    if (value?.type === 'CallExpression' && name?.type === 'MemberExpression')
      return `${before}${reading.joined}${text}`;
    const fragment =
      name?.type === 'Identifier' ? reading.known.get(name.value) : [...nodesOf(value)].find(isTemplate);
    // A fragment may use itself.
    const known = new Map([...reading.known].filter(([, one]) => one !== fragment));
    if (fragment !== undefined) return `${before}${written(fragment, { ...reading, known })}${text}`;
    return `${before}${/\blateral\s+$/.test(before) ? 'x()' : 'x'}${text}`;
  });
}

/** The name of a constant or function, and the template that it is, makes or returns. */
function fragmentOf(node: Node): [string, TaggedTemplateExpression][] {
  const name = node.type === 'VariableDeclarator' ? node.id : node.identifier;
  const makes = ['VariableDeclarator', 'FunctionDeclaration'].includes(node.type);
  if (!makes || !isNode(name)) return [];
  const all = [...nodesOf(node)];
  const result = all.findLast(({ type }) => type === 'ReturnStatement') ?? node;
  const template = [...nodesOf(result)].find(isTemplate);
  return template === undefined ? [] : [[String(name.value), template]];
}

interface Node {
  readonly type: string;
  readonly [key: string]: unknown;
}

function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null && 'type' in value;
}

function isTemplate(node: Node): node is Node & TaggedTemplateExpression {
  return node.type === 'TaggedTemplateExpression' && isNode(node.tag) && node.tag.value === 'sql';
}

function* nodesOf(value: unknown): Generator<Node> {
  if (typeof value !== 'object' || value === null) return;
  if (isNode(value)) yield value;
  for (const inner of Object.values(value)) yield* nodesOf(inner);
}
