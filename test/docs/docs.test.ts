import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { describe, expect, test } from 'vitest';
import { readSettings } from '../../app/settings.ts';
import { failureTypes } from '../../contract/failures.ts';
import manifest from '../../package.json' with { type: 'json' };
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

  test('lead from the README to every page, directly or through another', () => {
    const reached = new Set(['README.md']);
    for (const page of reached) {
      if (!page.endsWith('.md')) continue;
      for (const [, target = ''] of read(page).matchAll(/\]\(([^)#\s]+)[^)]*\)/g)) {
        if (!/^https?:/.test(target)) reached.add(join(dirname(page), target));
      }
    }
    for (const page of docs) expect([...reached]).toContain(page);
  });
});

/** Returns the lines of a page that people wrote as prose: no tables, code or generated parts. */
function proseOf(text: string): string[] {
  return text
    .replace(/<!-- generated: begin -->[\s\S]*?<!-- generated: end -->/, '')
    .replace(/^ *```[\s\S]*?^ *```$/gm, '')
    .split('\n')
    .filter((line) => !line.startsWith('|') && !line.startsWith('<!--'));
}

describe('prose', () => {
  test.each(handWritten)('of %s has lines of 100 characters at most', (page) => {
    expect(proseOf(read(page)).filter((line) => line.length > 100)).toEqual([]);
  });

  test('is every line outside of tables and code', () => {
    const long = `${'word '.repeat(20)}longer`;
    const page = `# Page\n\n${long}\n\n| ${long} |\n\n\`\`\`sh\n${long}\n\`\`\`\n`;
    expect(proseOf(page).filter((line) => line.length > 100)).toEqual([long]);
    expect(handWritten.flatMap((one) => proseOf(read(one))).length).toBeGreaterThan(1_000);
  });
});

describe('paths', () => {
  /** Files of the checkout that a page names, not those that a run makes. */
  const namedIn = (text: string): string[] =>
    [...text.matchAll(/`([\w.-]+(?:\/[\w.-]+)+\.\w+)`/g)]
      .map(([, path = '']) => path)
      .filter((path) => !path.startsWith('.metersync/'));

  test.each(handWritten)('that %s names exist', (page) => {
    for (const path of namedIn(read(page))) expect(existsSync(join(checkout, path)), path).toBe(true);
  });

  test('are found in the pages', () => {
    for (const page of ['ARCHITECTURE.md', 'CONTRIBUTING.md', 'docs/decisions.md'])
      expect(namedIn(read(page))).not.toEqual([]);
  });

  test('each invariant names a test that holds it', () => {
    const [, ...invariants] = read('docs/invariants.md').split('\n- ');
    expect(invariants.length).toBeGreaterThan(10);
    for (const invariant of invariants) expect(invariant).toMatch(/`test\/[\w./-]+\.test\.ts`\n?$/);
  });
});

describe('commands', () => {
  test('README and CI run the same test command, and every script of the README exists', () => {
    expect(read('README.md')).toMatch(/^npm ci && npm test$/m);
    expect(read('.ci/run')).toMatch(/^step npm ci$/m);
    expect(read('.ci/run')).toMatch(/^step npm test( |$)/m);
    const named = [...read('README.md').matchAll(/npm (?:run(?: -s)? )?([a-z]+)\b/g)].map(
      ([, name = '']) => name,
    );
    const scripts = named.filter((name) => name !== 'ci');
    expect(scripts).toContain('demo');
    for (const script of scripts) expect(Object.keys(manifest.scripts)).toContain(script);
  });
});

describe('failures.md', () => {
  test('has each failure of the catalogue once, with its action, and no other', () => {
    const rows = [...read('docs/reference/failures.md').matchAll(/^- `(\w+)` \((\w+)\): /gm)];
    const onPaper = rows.map(([, code, action]) => [code, action]);
    expect(onPaper).toEqual(Object.entries(failureTypes).map(([code, { action }]) => [code, action]));
  });
});

describe('settings.md', () => {
  test('has every variable that app/settings.ts reads, and no other', () => {
    const source = read('app/settings.ts');
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

describe('decisions.md', () => {
  test('says of every package why it was chosen', () => {
    const text = read('docs/decisions.md');
    const packages = Object.keys({ ...manifest.dependencies, ...manifest.devDependencies });
    const named = packages.map((name) => (name.startsWith('@temporalio/') ? '@temporalio/*' : name));
    for (const name of new Set(named)) expect(text.includes(`\`${name}\``), name).toBe(true);
  });
});
