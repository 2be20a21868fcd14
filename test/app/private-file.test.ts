import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  existsSync,
  lstatSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterEach, beforeEach, expect, test } from 'vitest';
import {
  createPrivateFile,
  makePrivateFolder,
  openPrivateLog,
  writePrivateFile,
  writePrivateFileOnce,
} from '../../app/process/private-file.ts';
import { embeddedCodecKey } from '../../app/temporal/payload-codec.ts';

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'metersync-test-'));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

const modeOf = (path: string): string => (lstatSync(path).mode & 0o777).toString(8);

/** Plants a link to another user's file under a name that is about to be written. */
function planted(): { path: string; victim: string } {
  const [path, victim] = [join(dir, 'file'), join(dir, 'victim')];
  writeFileSync(victim, 'mine', { mode: 0o644 });
  symlinkSync(victim, path);
  return { path, victim };
}

test('a complete file gets its name, is private, and replaces a link', async () => {
  const { path, victim } = planted();
  const file = createPrivateFile(path);
  const [unfinished = ''] = readdirSync(dir).filter((name) => name.endsWith('.unfinished'));
  expect(modeOf(join(dir, unfinished))).toBe('600');
  file.stream.write('whole');
  expect(lstatSync(path).isSymbolicLink()).toBe(true);
  await file.keep();
  file.discard();
  expect([readFileSync(path, 'utf8'), modeOf(path), lstatSync(path).isFile()]).toEqual([
    'whole',
    '600',
    true,
  ]);
  expect(readFileSync(victim, 'utf8')).toBe('mine');
  expect(readdirSync(dir).sort()).toEqual(['file', 'victim']);
});

test('a discarded file leaves nothing but the earlier file with its name', () => {
  const path = join(dir, 'file');
  writeFileSync(path, 'before');
  createPrivateFile(path).discard();
  expect(readdirSync(dir)).toEqual(['file']);
  expect(readFileSync(path, 'utf8')).toBe('before');
});

test('a device, pipe or folder is not replaced', () => {
  expect(() => createPrivateFile('/dev/null')).toThrow('/dev/null is not a file');
  expect(() => createPrivateFile(dir)).toThrow('is not a file');
});

test('a small file replaces a link, and a file that others could read', () => {
  const { path, victim } = planted();
  writePrivateFile(path, 'secret');
  expect([readFileSync(path, 'utf8'), modeOf(path)]).toEqual(['secret', '600']);
  writeFileSync(path, 'open');
  expect(readFileSync(victim, 'utf8')).toBe('mine');
  expect(readdirSync(dir).sort()).toEqual(['file', 'victim']);
});

test('a file that is written once is never replaced', () => {
  const path = join(dir, 'new/file');
  makePrivateFolder(join(dir, 'new'));
  expect(modeOf(join(dir, 'new'))).toBe('700');
  writePrivateFileOnce(path, 'first');
  writePrivateFileOnce(path, 'second');
  expect([readFileSync(path, 'utf8'), modeOf(path)]).toEqual(['first', '600']);
  expect(readdirSync(join(dir, 'new'))).toEqual(['file']);
});

test('a log is appended to and made private; a link is not opened', () => {
  const path = join(dir, 'log');
  writeFileSync(path, 'before\n', { mode: 0o644 });
  writeFileSync(openPrivateLog(path), 'after\n');
  expect([readFileSync(path, 'utf8'), modeOf(path)]).toEqual(['before\nafter\n', '600']);
  const { path: link, victim } = planted();
  expect(() => openPrivateLog(link)).toThrow(/ELOOP/);
  expect(readFileSync(victim, 'utf8')).toBe('mine');
});

test('processes that start together get the same key; a folder from a version without keys gets no key', async () => {
  const module = JSON.stringify(resolve(import.meta.dirname, '../../app/temporal/payload-codec.ts'));
  const script = `
    import { embeddedCodecKey } from ${module};
    process.stdout.write(embeddedCodecKey(${JSON.stringify(dir)}).key.toString('base64'));`;
  const children = Array.from({ length: 4 }, () =>
    spawn(process.execPath, ['--input-type=module', '--eval', script]),
  );
  const said = await Promise.all(
    children.map(async (child) => {
      const [key] = await Promise.all([text(child.stdout), once(child, 'close')]);
      return key;
    }),
  );
  const key = embeddedCodecKey(dir)?.key;
  expect(new Set(said)).toEqual(new Set([key?.toString('base64')]));
  expect(key).toHaveLength(32);
  expect(modeOf(join(dir, 'temporal-codec-key'))).toBe('600');
  writeFileSync(join(dir, 'temporal.db'), '');
  expect(embeddedCodecKey(dir)?.key).toEqual(key);
  rmSync(join(dir, 'temporal-codec-key'));
  expect(embeddedCodecKey(dir)).toBeUndefined();
  expect(existsSync(join(dir, 'temporal-codec-key'))).toBe(false);
  writeFileSync(join(dir, 'temporal-codec-key'), 'short');
  expect(() => embeddedCodecKey(dir)).toThrow(/does not contain a key/);
});
