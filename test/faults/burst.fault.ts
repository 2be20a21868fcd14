import { spawnSync } from 'node:child_process';
import { expect } from 'vitest';
import { until } from '../support/poll.ts';
import { fault, seeds } from './fault.ts';
import { lastAttempt, readWaits } from './ledger.ts';
import { seedOf } from './plan.ts';
import { startRig } from './rig.ts';
import { verdict } from './verdict.ts';

const burst = 5_000;
/** The most by which the receiver's memory may grow; keeping everything received would need more. */
const growthBytesMax = 128 * 1024 * 1024;
const hourSeconds = 3_600;

fault('C17', '5,000 events come at once', seeds().slice(0, 1), {}, async (seed) => {
  const rig = await startRig({ sandbox: { deliveryConcurrency: 1_000 } });
  const { service, parts } = rig;
  try {
    expect(await rig.backfill()).toBe('complete');
    // Warms up the receiver.
    await service.random(500, seed);
    await until('it has served', async () => (await service.status()).quiet, { timeoutMs: 120_000 });
    await service.disturb({ delayMs: [hourSeconds * 1000, hourSeconds * 1000] });
    const before = residentBytes(parts.receiver.pid);
    const earlier = await lastAttempt(service.databaseUrl);
    const events = await service.random(burst, seedOf(seed, 'C17'));
    await service.disturb({});
    await service.advance(hourSeconds);
    let most = before;
    await until(
      'everything was tried',
      async () => {
        most = Math.max(most, residentBytes(parts.receiver.pid));
        return (await service.status()).deliveries.inFlight === 0;
      },
      { timeoutMs: 300_000, everyMs: 100 },
    );
    expect(most - before).toBeLessThan(growthBytesMax);
    const figures = await verdict(rig);
    // Each delivery was accepted, or was refused at once because too many were waiting. Each had an answer.
    expect(Object.keys(figures.answers).filter((status) => !['204', '503'].includes(status))).toEqual([]);
    const grownMb = Math.round((most - before) / 1024 / 1024);
    // The times depend on the machine, which also sends the events, so they are only reported.
    const { p50, p99 } = await readWaits(service.databaseUrl, earlier);
    const waits = `answers p50 ${p50} ms, p99 ${p99} ms`;
    return { injected: `${events} events at once; ${waits}; receiver +${grownMb} MB`, figures };
  } finally {
    await rig.stop();
  }
});

function residentBytes(pid: number): number {
  const { stdout } = spawnSync('ps', ['-o', 'rss=', '-p', String(pid)], { encoding: 'utf8' });
  return Number(stdout) * 1024;
}
