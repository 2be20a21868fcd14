import { globSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { packagedFolder } from './packaged-folder.ts';

/** A file of analytics/: its text, and the views and functions that it creates. */
interface ViewFile {
  readonly path: string;
  readonly text: string;
  readonly makes: readonly string[];
}

/** A view or function by its name. */
export interface Created {
  readonly kind: 'view' | 'function';
  readonly name: string;
}

/** Lists the views and functions that a text creates, in order. */
export const createdBy = (text: string): Created[] =>
  [...text.matchAll(/create or replace (view|function) ([\w.]+)/g)].map(([, kind, name = '']) => ({
    kind: kind === 'view' ? kind : 'function',
    name,
  }));

/** Comments may name anything, and do not affect the order. */
const comments = /--.*$|^comment on [\s\S]*?';$/gm;
const qualifiedName = /\b\w+\.\w+\b/g;

/**
 * Returns the texts of analytics/, each after the files whose views and functions it names: the schema first,
 * comments last. `{{bills at="null" …}}` is replaced by templates/bills.sql with these arguments.
 * @throws Error naming the files of a cycle
 */
export function viewTexts(folder: string = packagedFolder('analytics')): string[] {
  const read = (path: string) => withTemplates(folder, readFileSync(join(folder, path), 'utf8'));
  const all = (pattern: string) => globSync(pattern, { cwd: folder }).sort();
  const files = all('{functions,views,checks}/*.sql').map((path): ViewFile => {
    const text = read(path);
    return { path, text, makes: createdBy(text).map(({ name }) => name) };
  });
  return [
    ...all('schema.sql').map(read),
    ...inOrder(files).map(({ text }) => text),
    ...all('comments/*.sql').map(read),
  ];
}

/** Sorts files by name, but each after the files that create what it names. */
function inOrder(files: readonly ViewFile[]): ViewFile[] {
  const makerOf = new Map(files.flatMap((file) => file.makes.map((name) => [name, file] as const)));
  const done = new Set<ViewFile>();
  const place = (file: ViewFile, after: readonly ViewFile[]) => {
    if (done.has(file)) return;
    const path = [...after, file];
    if (after.includes(file))
      throw new Error(`files name one another: ${path.map((one) => one.path).join(' → ')}`);
    for (const [name] of file.text.replace(comments, '').matchAll(qualifiedName)) {
      const maker = makerOf.get(name);
      if (maker !== undefined && maker !== file) place(maker, path);
    }
    done.add(file);
  };
  for (const file of files) place(file, []);
  return [...done];
}

/** Replaces each template reference by the template. */
function withTemplates(folder: string, text: string): string {
  return text.replace(/\{\{(\w+)(.*?)\}\}/g, (_, name: string, given: string) => {
    const values = new Map(
      [...given.matchAll(/(\w+)="(.*?)"/g)].map(([, key, value]) => [key, value]),
    );
    const template = readFileSync(join(folder, 'templates', `${basename(name)}.sql`), 'utf8');
    return template
      .replace(/^--.*\n/gm, '')
      .replace(/\{\{(\w+)\}\}/g, (_all, key: string) => values.get(key) ?? '')
      .trim();
  });
}
