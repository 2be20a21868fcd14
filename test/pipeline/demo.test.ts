import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { identify, isRunning, type ProcessIdentity } from '../../embedded/processes.ts';
import { readRunning } from '../../embedded/running.ts';
import { startCommand } from '../support/command.ts';
import { temporaryFolder } from '../support/folder.ts';
import { until } from '../support/poll.ts';
import { projectBinDir } from '../support/stack.ts';

test('the demo goes from an empty folder to an audit without differences, and leaves no process behind', {
  timeout: 150_000,
}, async () => {
  const folder = await temporaryFolder();
  const size = ['--companies', '2', '--documents', '30', '--interval-days', '1', '--events', '150'];
  const demo = startCommand(['demo', ...size], {
    cwd: folder.path,
    env: { PATH: `${projectBinDir()}:${process.env.PATH}` },
  });
  try {
    const started = await until('the demo runs its servers', () => processesIn(folder.path), {
      timeoutMs: 60_000,
    });
    expect(started.map(isRunning)).toEqual([true, true, true, true]);
    expect(await demo.ended, demo.stderr()).toEqual({ status: 0, signal: null });

    const said = demo.stdout();
    expect(said).toMatch(/│ companies\s+│\s+2 │/);
    expect(said).toMatch(/│ applied\s+│\s+\d+ │/);
    expect(said).toMatch(/│ delivered twice\s+│\s+[1-9]\d* │/);
    expect(said).toMatch(/│ p99\s+│/);
    expect(said).not.toMatch(/│ pending\s+│/);
    expect(said).toMatch(/^0 differences in [1-9][\d,]* records$/m);
    expect(said).toMatch(/^PGPASSWORD=\w+ psql postgres:\/\/metersync_owner@127\.0\.0\.1:\d+\/metersync$/m);
    expect(started.filter(isRunning)).toEqual([]);
  } finally {
    await demo.end('SIGKILL');
    await folder.remove();
  }
});

/** The guardian, the servers and the sandbox of the demo, once all of them run. */
function processesIn(cwd: string): ProcessIdentity[] | undefined {
  const dir = join(cwd, '.metersync/demo');
  const running = readRunning(dir);
  const sandbox = identify(JSON.parse(readFileSync(join(dir, 'sandbox.json'), 'utf8')).pid);
  const { postgres, temporal } = running?.servers ?? {};
  if (!running || !postgres || !temporal || !sandbox) return undefined;
  return [running.guardian, postgres, temporal, sandbox];
}
