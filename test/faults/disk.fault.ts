import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'vitest';
import { until } from '../support/poll.ts';
import { fault, seeds } from './fault.ts';
import { smallDisk } from './full-disk.ts';
import { readSent } from './ledger.ts';
import { eventsPerSecond, startLoad } from './load.ts';
import { seedOf } from './plan.ts';
import { startRig } from './rig.ts';
import { verdict } from './verdict.ts';

/** How long Postgres has no space. */
const fullMs = 8_000;

fault('C15', "first Postgres's disk is full, then Temporal's", seeds().slice(0, 1), {}, async (seed) => {
  const [postgres, temporal] = await Promise.all([smallDisk(600), smallDisk(600)]);
  const rig = await startRig({ folders: { postgres: postgres.path, temporal: temporal.path } });
  try {
    expect(await rig.backfill()).toBe('complete');
    const load = startLoad(rig.service, seedOf(seed, 'C15'), eventsPerSecond);
    const answered = async (status: string) => (await readSent(rig.service.databaseUrl)).answers[status] ?? 0;
    await until('events come', async () => (await answered('204')) > 100);

    rig.harm();
    postgres.fill();
    const before = await answered('204');
    await delay(fullMs);
    // Events are still accepted.
    expect(await answered('204')).toBeGreaterThan(before);
    postgres.free();

    rig.harm();
    temporal.fill();
    await until('events are given back', async () => (await answered('503')) > 0, { timeoutMs: 120_000 });
    const ready = async () => (await fetch(`http://127.0.0.1:${rig.env.RECEIVER_PORT}/readyz`)).status;
    await until('the receiver is not ready', async () => (await ready()) === 503);
    temporal.free();
    await until('the receiver is ready again', async () => (await ready()) === 200, { timeoutMs: 60_000 });
    const { perSecond } = await load.end(20);
    const figures = await verdict(rig);
    return { injected: '', perSecond, figures };
  } finally {
    await rig.stop();
    await Promise.all([postgres.remove(), temporal.remove()]);
  }
});
