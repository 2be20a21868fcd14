import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'vitest';
import { until } from '../support/poll.ts';
import { fault } from './fault.ts';
import { type SmallDisk, smallDisk } from './full-disk.ts';
import { readSent } from './ledger.ts';

/** How long Postgres has no space. */
const fullMs = 8_000;

fault<Record<'postgres' | 'temporal', SmallDisk>>({
  name: 'C15',
  title: "first Postgres's disk is full, then Temporal's",
  around: async (work) => {
    const [postgres, temporal] = await Promise.all([smallDisk(600), smallDisk(600)]);
    try {
      const folders = { postgres: postgres.path, temporal: temporal.path };
      return await work({ folders }, { postgres, temporal });
    } finally {
      await Promise.all([postgres.remove(), temporal.remove()]);
    }
  },
  backfill: 'before',
  loadSeconds: 20,
  strike: async ({ rig, made: { postgres, temporal } }) => {
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
  },
});
