import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { readRunning } from '../../embedded/folder.ts';
import { identify, isRunning, type ProcessIdentity } from '../../embedded/process.ts';
import { eraseFolder } from '../../embedded/start.ts';
import { temporalCache } from '../../embedded/temporal.ts';
import { verdictStatus } from '../../health/verdict.ts';
import { runCommand } from '../support/command.ts';
import { runProcess, startCommand } from '../support/command-process.ts';
import { temporaryFolder } from '../support/folder.ts';
import { until } from '../support/poll.ts';

test('the demo starts in an empty folder, ends with an audit without differences, and leaves no process behind', {
  timeout: 150_000,
}, async () => {
  const folder = await temporaryFolder();
  const size = ['--companies', '2', '--documents', '30', '--interval-days', '1', '--events', '150'];
  const demo = startCommand(['demo', ...size], {
    cwd: folder.path,
    env: { PATH: `${temporalCache()}:${process.env.PATH}` },
  });
  try {
    const started = await until('the demo runs its servers', () => processesIn(folder.path), {
      timeoutMs: 60_000,
    });
    expect(started.map(isRunning)).toEqual([true, true, true]);
    const second = await runProcess(['demo', ...size], { cwd: folder.path });
    expect(second).toMatchObject({ status: 1, stdout: '', stderr: expect.stringContaining(`${demo.pid}`) });
    expect(started.map(isRunning)).toEqual([true, true, true]);
    expect(await demo.ended, demo.stderr()).toEqual({ status: 0, signal: null });

    const said = demo.stdout();
    expect(said).toMatch(/│ companies\s+│\s+2 │/);
    expect(said).toMatch(/│ applied\s+│\s+\d+ │/);
    expect(said).toMatch(/│ delivered twice\s+│\s+[1-9]\d* │/);
    expect(said).toMatch(/│ p99\s+│/);
    expect(said).not.toMatch(/│ pending\s+│/);
    expect(said).toMatch(/^0 differences in [1-9][\d,]* records$/m);
    expect(started.filter(isRunning)).toEqual([]);

    // The commands that the demo suggests work on its data.
    expect(said).toMatch(/^ {2}metersync checks list$/m);
    const [, dir = ''] = /^ {2}export METERSYNC_DIR='(.+)'$/m.exec(said) ?? [];
    const options = { cwd: folder.path, env: { METERSYNC_DIR: dir } };
    const status = await runCommand(['status', '--json'], options);
    expect(JSON.parse(status.stdout)).toMatchObject({
      rows: { companies: 2 },
      verdict: {
        word: 'Broken',
        findings: expect.arrayContaining([
          expect.objectContaining({ name: 'workers', saw: expect.stringContaining('no Temporal') }),
        ]),
      },
    });
    // Nothing runs, so nobody is left to open an alarm.
    const printed = await runCommand(['status', '--exit-code'], options);
    expect(printed).toMatchObject({
      status: verdictStatus.Broken,
      stdout: expect.stringMatching(/^Broken: [\s\S]*no worker is running either/),
    });
    expect(printed.stdout).not.toMatch(/opens after/);
    const report = await runCommand(['report', '--html', 'report.html'], options);
    expect(report, report.stderr).toMatchObject({ status: 0 });
    expect(existsSync(join(folder.path, 'report.html'))).toBe(true);
    // Without METERSYNC_DIR the error names the folder of the demo, and no second warehouse is created.
    const beside = await runCommand(['status'], { cwd: folder.path });
    expect(beside).toMatchObject({ status: 1, stderr: expect.stringContaining(`METERSYNC_DIR=`) });
    expect(existsSync(join(folder.path, '.metersync/postgres'))).toBe(false);
  } finally {
    await demo.end('SIGKILL');
    await eraseFolder(join(folder.path, '.metersync/demo'));
    await folder.remove();
  }
});

test('a demo that is kept is in sync, as the command that it suggests says, and ends with status 0 on Ctrl-C', {
  timeout: 150_000,
}, async () => {
  const folder = await temporaryFolder();
  const size = ['--companies', '1', '--documents', '4', '--interval-days', '1', '--events', '10'];
  const demo = startCommand(['demo', ...size, '--keep'], {
    cwd: folder.path,
    env: { PATH: `${temporalCache()}:${process.env.PATH}` },
  });
  try {
    await demo.printed(/^Ctrl-C ends it/, 120_000);
    expect(demo.stdout()).toMatch(/^ {2}metersync status$/m);
    const env = { METERSYNC_DIR: join(folder.path, '.metersync/demo') };
    const status = await runCommand(['status', '--json'], { env });
    expect(JSON.parse(status.stdout)).toMatchObject({ verdict: { word: 'In sync', findings: [] } });
    expect(await demo.end('SIGINT'), demo.stderr()).toEqual({ status: 0, signal: null });
  } finally {
    await demo.end('SIGKILL');
    await eraseFolder(join(folder.path, '.metersync/demo'));
    await folder.remove();
  }
});

/** Lists the servers and the sandbox of the demo, once all of them run. */
function processesIn(cwd: string): ProcessIdentity[] | undefined {
  const dir = join(cwd, '.metersync/demo');
  const running = readRunning(dir);
  const sandbox = identify(JSON.parse(readFileSync(join(dir, 'sandbox.json'), 'utf8')).pid);
  const { postgres, temporal } = running?.servers ?? {};
  if (!running || !postgres || !temporal || !sandbox) return undefined;
  return [postgres, temporal, sandbox];
}
