import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { resolve } from 'node:path';
import { text } from 'node:stream/consumers';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { printable, printableValue } from '../../app/process/printable.ts';
import { steering } from '../support/steering.ts';
import { anyCharacter } from '../support/text.ts';

const log = resolve(import.meta.dirname, '../../app/process/log.ts');

const script = `
  import { setTimeout as wait } from 'node:timers/promises';
  import { createLog } from ${JSON.stringify(log)};
  const log = createLog({ level: 'info' });
  for (const line of [1, 2, 3]) {
    log.warn({ line }, 'refused');
    await wait(20);
  }
  process.stderr.write('went on');
  process.exit(7);
`;

test('a log on a full disk loses its lines, but the process continues and ends normally', async () => {
  const full = openSync('/dev/full', 'w');
  const child = spawn(process.execPath, ['--input-type=module', '--eval', script], {
    stdio: ['ignore', full, 'pipe'],
    timeout: 50_000,
    killSignal: 'SIGKILL',
  });
  closeSync(full);
  const [said, [status]] = await Promise.all([
    text(child.stderr as NodeJS.ReadableStream),
    once(child, 'exit'),
  ]);
  expect({ said, status }).toEqual({ said: 'went on', status: 7 });
});

/** A colour code of pino-pretty. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: it begins with one
const colour = /\u001b\[\d+m/g;
const hostile = 'x\u001b]0;OWNED\u0007\u009b2J\u202e\n12:00 INFO: forged';

const quoting = `
  import { createLog } from ${JSON.stringify(log)};
  const hostile = ${JSON.stringify(hostile)};
  createLog({ level: 'info' }).warn({ [hostile]: [hostile], err: new Error(hostile) }, hostile);
`;

test('text that a log quotes cannot control a terminal, and is unchanged in JSON', async () => {
  const piped = spawn(process.execPath, ['--input-type=module', '--eval', quoting], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const json = await text(piped.stdout);
  expect(steering(json)).toEqual([]);
  expect(JSON.parse(json)).toMatchObject({ msg: hostile, [hostile]: [hostile], err: { message: hostile } });
  const words = [process.execPath, '--input-type=module', '--eval', quoting];
  const command = words.map((word) => `'${word.replaceAll("'", String.raw`'\''`)}'`).join(' ');
  const terminal = spawn('script', ['-qec', command, '/dev/null'], { stdio: ['ignore', 'pipe', 'inherit'] });
  // Removes the terminal's line ends and our colours.
  const screen = (await text(terminal.stdout)).replaceAll('\r\n', '\n').replaceAll(colour, '');
  expect(steering(screen)).toEqual([]);
  expect(screen).toContain(String.raw`WARN: x\u001b]0;OWNED\u0007\u009b2J\u202e\n12:00 INFO: forged`);
  expect(screen).not.toMatch(/^12:00/m);
});

describe('untrusted text for a terminal', () => {
  test.each([
    ['a window title', 'x\u001b]0;OWNED\u0007', String.raw`x\u001b]0;OWNED\u0007`],
    ['a link', '\u001b]8;;http://a\u001b\\b', String.raw`\u001b]8;;http://a\u001b\b`],
    ['controls of the second set', 'a\u009b2J\u0085', String.raw`a\u009b2J\u0085`],
    ['a line of its own', 'a\r\nbackfill: complete', String.raw`a\r\nbackfill: complete`],
    ['other ends of lines', 'a\u2028b\u2029\u000b\f', String.raw`a\u2028b\u2029\u000b\f`],
    ['delete and tab', '\u007f\t', String.raw`\u007f\t`],
    ['text turned around', 'invoice\u202efdp.exe\u2066\u2069', String.raw`invoice\u202efdp.exe\u2066\u2069`],
    ['what has no width', 'pay\u200bpal\ufeff\u115f\u00ad', String.raw`pay\u200bpal\ufeff\u115f\u00ad`],
    ['tags beyond the basic plane', '\u{e0041}', String.raw`\udb40\udc41`],
    ['half of a pair', '\ud83d!', String.raw`\ud83d!`],
  ])('is escaped if it contains %s', (_name, text, escaped) => {
    expect(printable(text)).toBe(escaped);
  });

  test('stays unchanged if it is words of any script or emoji', () => {
    const text = 'Ærø – 東京電力 – كهرباء – חשמל – ❤️ 🔌 "a\\b"';
    expect(printable(text)).toBe(text);
  });
});

test('escaped text controls nothing, and escaping it again changes nothing', () => {
  fc.assert(
    fc.property(fc.string({ unit: anyCharacter }), (text) => {
      const escaped = printable(text);
      expect(steering(escaped)).toEqual([]);
      expect(escaped).not.toContain('\n');
      expect(printable(escaped)).toBe(escaped);
    }),
  );
});

test('escaped JSON is the same JSON', () => {
  fc.assert(
    fc.property(fc.json({ stringUnit: anyCharacter }), (text) => {
      const oneLine = JSON.stringify(JSON.parse(text));
      expect(JSON.parse(printable(oneLine))).toEqual(JSON.parse(text));
    }),
  );
});

test('escapes every text and field name in a value, and keeps the lines of a stack', () => {
  const value = { 'a\u001b': ['b\n', { stack: 'Error: c\u009b\n    at d' }], e: 1, f: null };
  expect(printableValue(value)).toEqual({
    'a\\u001b': ['b\\n', { stack: 'Error: c\\u009b\n    at d' }],
    e: 1,
    f: null,
  });
});
