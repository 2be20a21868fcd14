import { spawn } from 'node:child_process';
import { glob, readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { text } from 'node:stream/consumers';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { steering } from '../support/steering.ts';
import { anyCharacter } from '../support/text.ts';

const cli = resolve(import.meta.dirname, '../../cli');

/** Prints rows from standard input as a table, as JSON, as an error and as a progress display. */
const script = `
  import { text } from 'node:stream/consumers';
  import { print, printJson, say } from ${JSON.stringify(resolve(cli, 'output.ts'))};
  import { createProgress, table } from ${JSON.stringify(resolve(cli, 'terminal.ts'))};
  const rows = JSON.parse(await text(process.stdin));
  print(...table(['a', 'b', 'c'], rows));
  print(...rows.map((row) => row.join(' ')));
  for (const row of rows) {
    printJson(row);
    say(row.join(' '));
    const progress = await createProgress();
    progress.show(row);
    progress.done();
  }
`;

const controls = [
  '\u0000',
  '\u0007',
  '\b',
  '\t',
  '\n',
  '\r',
  '\u001b[2J',
  '\u007f',
  '\u0085',
  '\u009b',
  '\u202e',
  '\u2028',
];

test('text in rows cannot control the terminal or add lines', async () => {
  const value = fc.oneof(
    fc.string({ unit: anyCharacter }),
    fc.array(fc.constantFrom(...controls), { maxLength: 20 }).map((chars) => chars.join('')),
  );
  const rows = fc.sample(fc.tuple(value, value, value), { seed: 20_261_124, numRuns: 400 });
  const child = spawn(process.execPath, ['--input-type=module', '--eval', script]);
  child.stdin.end(JSON.stringify(rows));
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr)]);
  expect([steering(stdout), steering(stderr)]).toEqual([[], []]);
  const lines = stdout.split('\n');
  // A table of two borders, a head, a rule and the rows; the rows as words; the rows as JSON; an end of line.
  expect(lines.length).toBe(2 + 3 * rows.length + 1 + 2);
  expect(lines.slice(-1 - rows.length, -1).map((line) => JSON.parse(line))).toEqual(rows);
});

test('commands print only through output.ts', async () => {
  const writers: string[] = [];
  for await (const file of glob('**/*.ts', { cwd: cli })) {
    if (
      /\bconsole\.(log|info|warn|error|debug)\b|\bstd(out|err)\.write/.test(
        await readFile(resolve(cli, file), 'utf8'),
      )
    )
      writers.push(file);
  }
  // main.ts prints by itself: it runs in any Node, even one that reads no TypeScript.
  expect(writers.toSorted()).toEqual(['main.ts', 'output.ts']);
});
