import { randomBytes } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { expect, onTestFinished, test } from 'vitest';
import { startOwner, temporaryFolder } from './owner-process.ts';

const planted = Object.fromEntries(
  ['SERVICE_API_KEY', 'WEBHOOK_SECRETS', 'TEMPORAL_CODEC_KEYS', 'DATABASE_URL', 'TEMPORAL_API_KEY'].map(
    (name) => [name, `hush-${randomBytes(12).toString('hex')}`],
  ),
);

/** Reads the environment or arguments of a process from the kernel; empty when it has ended. */
function read(pid: number | string, what: 'environ' | 'cmdline'): string {
  try {
    return readFileSync(`/proc/${pid}/${what}`, 'utf8');
  } catch {
    return '';
  }
}

const plantedIn = (text: string): string[] =>
  Object.entries(planted).flatMap(([name, secret]) => (text.includes(secret) ? [name] : []));

test('no embedded server or guardian has a secret of the program in its environment or arguments', async () => {
  for (const [name, secret] of Object.entries(planted)) {
    const before = process.env[name];
    process.env[name] = secret;
    onTestFinished(() => {
      if (before === undefined) delete process.env[name];
      else process.env[name] = before;
    });
  }
  const owner = await startOwner(temporaryFolder());
  expect(plantedIn(read(owner.child.pid ?? 0, 'environ'))).toEqual(Object.keys(planted));
  for (const name of ['guardian', 'postgres', 'temporal'] as const) {
    expect(read(owner[name].pid, 'environ'), name).not.toBe('');
    expect(plantedIn(read(owner[name].pid, 'environ')), name).toEqual([]);
  }
  const running = readdirSync('/proc').filter((entry) => /^\d+$/.test(entry));
  expect(plantedIn(running.map((pid) => read(pid, 'cmdline')).join('\n'))).toEqual([]);
});
