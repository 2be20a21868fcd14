import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { resolve } from 'node:path';
import { text } from 'node:stream/consumers';
import { expect, test } from 'vitest';
import { steering } from '../support/steering.ts';

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
