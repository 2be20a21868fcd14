import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { startCommand } from '../support/command-process.ts';
import { createDatabase } from '../support/database.ts';
import { temporaryFolder } from '../support/folder.ts';

test('the sandbox runs on a given database, in an empty folder', async () => {
  const [database, folder] = await Promise.all([createDatabase('sandbox'), temporaryFolder()]);
  const size = ['--companies', '1', '--documents', '1', '--interval-days', '1'];
  const sandbox = startCommand(['sandbox', ...size], {
    cwd: folder.path,
    env: { METERSYNC_DIR: join(folder.path, 'fresh'), SANDBOX_DATABASE_URL: database.url },
  });
  onTestFinished(async () => {
    await sandbox.end('SIGKILL');
    await Promise.all([database.drop(), folder.remove()]);
  });
  await sandbox.printed(/^The service runs at http/);
  expect(await sandbox.end('SIGTERM')).toMatchObject({ status: 0 });
});
