import { chmodSync, copyFileSync, existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { temporalCache } from '../../embedded/temporal.ts';
import { startCommand } from '../support/command-process.ts';
import { temporaryFolder } from '../support/folder.ts';

test('does not run a program from the folder where a command is started', {
  timeout: 60_000,
}, async () => {
  const folder = await temporaryFolder();
  onTestFinished(() => folder.remove());
  const mark = join(folder.path, 'mark');
  const planted = join(folder.path, 'cloned/.metersync/bin');
  mkdirSync(planted, { recursive: true });
  writeFileSync(join(planted, 'temporal'), `#!/bin/sh\ntouch ${mark}\necho "temporal version 1.9.1"\n`);
  chmodSync(join(planted, 'temporal'), 0o755);
  // The user's own cache contains the program, so nothing is fetched.
  const cache = join(folder.path, 'cache', 'metersync', basename(temporalCache()));
  mkdirSync(cache, { recursive: true });
  copyFileSync(join(temporalCache(), 'temporal'), join(cache, 'temporal'));

  const receiver = startCommand(['receiver'], {
    cwd: join(folder.path, 'cloned'),
    env: {
      PATH: '/usr/bin:/bin',
      XDG_CACHE_HOME: join(folder.path, 'cache'),
      METERSYNC_DIR: join(folder.path, 'data'),
      RECEIVER_PORT: '0',
      WEBHOOK_SECRETS: `whsec_${Buffer.alloc(32, 7).toString('base64')}`,
    },
  });
  onTestFinished(async () => void (await receiver.end('SIGKILL')));
  await receiver.printed(/receiver: POST /);
  expect(existsSync(mark)).toBe(false);
  expect(await receiver.end('SIGTERM'), receiver.stderr()).toEqual({ status: 0, signal: null });
});
