import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** Words that a newcomer stumbles over, each with those to write instead: see docs/glossary.md. */
const banned: readonly (readonly [word: RegExp, instead: string])[] = [
  [/\bin vain\b/, 'without success'],
  [/\bof whose\b/, 'whose, of which'],
  [/\b(\w+_)?told(_\w+)?\b/, 'reported, named, notified'],
  [/\btells? of\b/, 'names, reports, lists'],
  [/\bbelieve[sd]?\b/, 'accepts'],
  [/\b(bury|buries|buried)\b/, 'tombstones'],
  [/\bperhaps\b/, 'may'],
  [/\bwhatever read\b/, 'any read'],
  [/\blearnt\b/, 'found'],
  [/\bwithout a word\b/, 'silently'],
  [/\bits own sake\b/, 'its own failure'],
];

/** Between words of a phrase: a space, or the end of a line and what begins a comment's next. */
const gap = String.raw`\s+(?:(?:\*|\/\/|--)\s+)?`;

/** Paths that are not searched: what programs write, the words themselves, and the project's history. */
const left =
  /(^|\/)(node_modules|dist|\.\w[^/]*)\/|^dbt\/(logs|target)\/|^(verify\/words|test\/verify\/words\.test)\.ts$|^CHANGELOG\.md$/;

export interface BannedWord {
  readonly line: number;
  readonly word: string;
  readonly instead: string;
}

/** Lists the banned words of a text, also across the end of a line. */
export function findBanned(text: string): BannedWord[] {
  return banned
    .flatMap(([word, instead]) => {
      const anywhere = new RegExp(word.source.replaceAll(' ', gap), 'gi');
      return [...text.matchAll(anywhere)].map((found) => ({
        line: text.slice(0, found.index).split('\n').length,
        word: found[0].replace(new RegExp(gap, 'g'), ' '),
        instead,
      }));
    })
    .sort((a, b) => a.line - b.line);
}

/** Checks the code, its comments, messages and tests, and all pages. */
export function verifyWords(project: string): string[] {
  const paths = globSync('**/*.{ts,sql,md,yml,css,js}', {
    cwd: project,
    exclude: (path) => left.test(`${path}/`),
  });
  return paths
    .filter((path) => !left.test(path))
    .sort()
    .flatMap((path) =>
      findBanned(readFileSync(join(project, path), 'utf8')).map(
        ({ line, word, instead }) => `${path}:${line}: "${word}": write ${instead}`,
      ),
    );
}
