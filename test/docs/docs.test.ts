import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { describe, expect, test } from 'vitest';
import { readSettings } from '../../app/settings/settings.ts';
import { buildProgram } from '../../cli/program.ts';
import { settings } from '../../verify/settings-page.ts';

const checkout = resolve(import.meta.dirname, '../..');
const read = (path: string) => readFileSync(join(checkout, path), 'utf8');
const docs = globSync('docs/**/*.md', { cwd: checkout }).sort();
const pages = ['README.md', 'ARCHITECTURE.md', 'CONTRIBUTING.md', 'CHANGELOG.md', ...docs];
const handWritten = pages.filter((page) => !read(page).startsWith('<!-- Generated from'));

/** Returns the anchors of a page's headings. */
function anchorsOf(text: string): Set<string> {
  const headings = [...text.matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) => heading);
  return new Set(
    headings.map((heading) =>
      heading
        .toLowerCase()
        .replace(/[^\w\s-]/g, '')
        .replaceAll(' ', '-'),
    ),
  );
}

describe('links', () => {
  test.each(pages)('of %s lead to existing files and headings', (page) => {
    const text = read(page);
    const links = [...text.matchAll(/\]\(([^)\s]+)\)/g)].map(([, target = '']) => target);
    for (const target of links.filter((link) => !/^https?:/.test(link))) {
      const [path = '', anchor] = target.split('#');
      const file = path === '' ? page : join(dirname(page), path);
      expect(existsSync(join(checkout, file)), `${page}: ${target}`).toBe(true);
      if (anchor !== undefined) expect(anchorsOf(read(file))).toContain(anchor);
    }
  });
});

describe('paths', () => {
  /** Lists the files of the checkout that a page names, without files that a run creates. */
  const namedIn = (text: string): string[] =>
    [...text.matchAll(/`([\w.-]+(?:\/[\w.-]+)+\.\w+)`/g)]
      .map(([, path = '']) => path)
      .filter((path) => !path.startsWith('.metersync/'));

  test.each(handWritten)('that %s names exist', (page) => {
    for (const path of namedIn(read(page))) expect(existsSync(join(checkout, path)), path).toBe(true);
  });

  test('each statement about what always holds names the tests that prove it', () => {
    const [, section = ''] = read('ARCHITECTURE.md').split('## What always holds\n');
    const [, ...statements] = (section.split('\n## ')[0] ?? '').split('\n- ');
    expect(statements.length).toBeGreaterThan(25);
    for (const statement of statements) expect(statement).toMatch(/`test\/[\w./-]+\.test\.ts`/);
  });
});

describe('commands', () => {
  /** The words after "metersync" of each command that a page has in code. */
  const namedIn = (text: string): string[][] =>
    [...text.matchAll(/```[\s\S]*?```|`[^`\n]+`/g)].flatMap(([code]) =>
      [...code.matchAll(/(?:^|npx |`|-s )metersync(?: --)? ([a-z][^`\n#|&;]*)/gm)].map(([, words = '']) =>
        words.trim().split(/\s+/),
      ),
    );

  test.each(handWritten.filter((page) => page !== 'CHANGELOG.md'))(
    'and options that %s names exist',
    (page) => {
      for (const words of namedIn(read(page))) {
        const [name = '', part = ''] = words;
        const command = buildProgram().commands.find((one) => one.name() === name);
        const subcommand = command?.commands.find((one) => one.name() === part);
        const isIncomplete = part === '' || part.startsWith('-');
        const known = command?.commands.length === 0 || isIncomplete ? command : subcommand;
        expect(known, `${page}: metersync ${words.join(' ')}`).toBeDefined();
        const options = known?.options.map(({ long }) => long) ?? [];
        for (const option of words.filter((word) => word.startsWith('--')))
          expect([...options, '--help'], `${page}: metersync ${words.join(' ')}`).toContain(option);
      }
    },
  );
});

describe('settings.md', () => {
  test('has every variable that app/settings/ reads, and no other', () => {
    const source = ['environment', 'settings'].map((name) => read(`app/settings/${name}.ts`)).join('');
    const variables = new Set(source.match(/\b[A-Z]+(?:_[A-Z]+)+\b/g));
    expect(Object.keys(settings).sort()).toEqual([...variables].sort());
    for (const name of variables)
      expect(read('docs/reference/settings.md')).toMatch(
        new RegExp(`^(?:- |\\| )?\`${name}\`(?: \\(|:| \\|)`, 'm'),
      );
  });

  test('has examples of Postgres URLs that verify its certificate', () => {
    const examples = pages.flatMap((page) =>
      [...read(page).matchAll(/postgres(?:ql)?:\/\/[^\s'"`|]+@[^\s'"`|]+/g)].map(String),
    );
    expect(examples.length).toBeGreaterThan(1);
    for (const example of examples) expect(example).toContain('sslmode=verify-full');
  });

  test('has the defaults of the code', () => {
    const defaults = Object.entries(settings).flatMap(([name, setting]) =>
      setting.default === undefined ? [] : [[name, setting.default]],
    );
    expect(defaults.length).toBeGreaterThan(5);
    expect(readSettings(Object.fromEntries(defaults))).toEqual(readSettings({}));
  });
});
