import { expect, inject, test } from 'vitest';
import manifest from '../../package.json' with { type: 'json' };
import { createNamespace } from '../support/namespace.ts';
import { until } from '../support/poll.ts';
import { checkout, startProgram } from './package.ts';

test('SIGTERM to npm reaches the command that a script runs, and the command drains', async () => {
  const npm = startProgram('npm', ['run', 'metersync', '--', 'receiver'], {
    cwd: checkout,
    env: {
      TEMPORAL_ADDRESS: inject('temporalAddress'),
      TEMPORAL_NAMESPACE: await createNamespace(),
      WEBHOOK_SECRETS: `whsec_${Buffer.alloc(32, 5).toString('base64')}`,
      RECEIVER_PORT: '0',
    },
  });
  try {
    const address = () => /receiver: POST (http:\S+)\/webhooks/.exec(npm.said())?.[1];
    const url = await until('the receiver says where it listens', address);
    expect((await fetch(`${url}/healthz`)).status).toBe(200);
    npm.child.kill('SIGTERM');
    await npm.ended;
    expect(npm.said()).toContain('"stopped"');
    await expect(fetch(`${url}/healthz`)).rejects.toThrow();
  } finally {
    npm.child.kill('SIGKILL');
  }
});

test('every script that runs the command replaces its shell, so that signals reach the command', () => {
  const running = Object.values(manifest.scripts).filter((script) => script.includes('cli/main.ts'));
  expect(running.length).toBeGreaterThan(3);
  for (const script of running) expect(script).toMatch(/^exec node cli\/main\.ts\b/);
});
