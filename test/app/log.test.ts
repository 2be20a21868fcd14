import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { resolve } from 'node:path';
import { text } from 'node:stream/consumers';
import { expect, test } from 'vitest';

const log = resolve(import.meta.dirname, '../../app/log.ts');

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

test('a log on a full disk loses its lines, and the process goes on and ends', async () => {
  const full = openSync('/dev/full', 'w');
  const child = spawn(process.execPath, ['--input-type=module', '--eval', script], {
    stdio: ['ignore', full, 'pipe'],
    timeout: 10_000,
    killSignal: 'SIGKILL',
  });
  closeSync(full);
  const [said, [status]] = await Promise.all([
    text(child.stderr as NodeJS.ReadableStream),
    once(child, 'exit'),
  ]);
  expect({ said, status }).toEqual({ said: 'went on', status: 7 });
});
