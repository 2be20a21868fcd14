import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'vitest';
import { temporaryFolder } from '../support/folder.ts';
import { until } from '../support/poll.ts';
import { fault, seeds } from './fault.ts';
import { eventsPerSecond, startLoad } from './load.ts';
import { seedOf } from './plan.ts';
import { startRig } from './rig.ts';
import { verdict } from './verdict.ts';

const once = seeds().slice(0, 1);
const loadSeconds = 20;
const daySeconds = 86_400;

fault('C9', 'deliveries come at least three times, in any order, up to 24 h late', once, {}, async (seed) => {
  const rig = await startRig();
  try {
    expect(await rig.backfill()).toBe('complete');
    const { service, receiverUrl, env } = rig;
    for (const _more of [2, 3])
      await service.control('POST', 'endpoints', { url: receiverUrl, secret: env.WEBHOOK_SECRETS });
    await service.disturb({ duplicate: 0.3, shuffle: true, delayMs: [0, daySeconds * 1000], seed });
    const load = startLoad(service, seedOf(seed, 'C9'), eventsPerSecond);
    const { perSecond } = await load.end(loadSeconds);
    const figures = await verdict(rig, { advanceSeconds: 3_600 });
    expect(figures.answers['204']).toBeGreaterThan(3.5 * figures.events);
    return { injected: '', perSecond, figures };
  } finally {
    await rig.stop();
  }
});

fault('C12', "clocks differ by 4 minutes, by 6, and the worker's jumps", once, {}, async (seed) => {
  const rig = await startRig();
  const restartWith = async (part: 'receiver' | 'worker', shiftMs: number) => {
    await rig.parts[part].stop('SIGTERM');
    rig.launch[part].env.NODE_OPTIONS = shiftMs === 0 ? '' : shiftedClock(shiftMs);
    await rig.parts[part].start();
  };
  const acknowledged = async () => (await rig.service.status()).deliveries.delivered;
  try {
    expect(await rig.backfill()).toBe('complete');
    const load = startLoad(rig.service, seedOf(seed, 'C12'), eventsPerSecond);
    for (const minutes of [4, -4]) {
      await restartWith('receiver', minutes * 60_000);
      const before = await acknowledged();
      await until('deliveries are acknowledged', async () => (await acknowledged()) > before + 200);
    }
    await rig.parts.receiver.stop('SIGTERM');
    expect(rig.said('receiver').join('\n')).not.toContain('timestamp-');
    await restartWith('worker', 3_600_000);
    for (const minutes of [6, -6]) {
      await restartWith('receiver', minutes * 60_000);
      await delay(3_000);
      await rig.parts.receiver.stop('SIGTERM');
    }
    const { perSecond } = await load.end();
    expect(rig.said('receiver').join('\n')).toMatch(/timestamp-old[\s\S]*timestamp-new/);
    await restartWith('receiver', 0);
    await restartWith('worker', -3_600_000);
    const figures = await verdict(rig);
    expect(figures.answers['401']).toBeGreaterThan(0);
    return { injected: '', perSecond, figures };
  } finally {
    await rig.stop();
  }
});

/** Returns options of Node that shift the clock of a process. */
function shiftedClock(ms: number): string {
  const code = `const Real=Date;globalThis.Date=class extends Real{constructor(...given){if(given.length===0)super(Real.now()+${ms});else super(...given)}static now(){return Real.now()+${ms}}}`;
  return `--import=data:text/javascript,${encodeURIComponent(code)}`;
}

fault(
  'C13',
  'the secret is rotated under load, and the receiver learns of it late',
  once,
  {},
  async (seed) => {
    const folder = await temporaryFolder();
    const file = join(folder.path, 'secrets');
    const rig = await startRig();
    const { service } = rig;
    try {
      await writeFile(file, `${rig.env.WEBHOOK_SECRETS}\n`);
      Object.assign(rig.launch.receiver.env, { WEBHOOK_SECRETS_FILE: file, WEBHOOK_SECRETS: '' });
      await rig.parts.receiver.stop('SIGTERM');
      await rig.parts.receiver.start();
      expect(await rig.backfill()).toBe('complete');
      const load = startLoad(service, seedOf(seed, 'C13'), eventsPerSecond);
      const { endpoints } = await service.control<{ endpoints: { id: string }[] }>('GET', 'endpoints');
      const rotated = await service.control<{ secret: string }>(
        'POST',
        `endpoints/${endpoints[0]?.id}/secret`,
        {},
      );
      await delay(5_000);
      await service.advance(daySeconds / 2);
      await writeFile(file, `${rotated.secret}\n`);
      await delay(5_000);
      // From here on, nothing is signed with the old secret.
      await service.advance(daySeconds);
      const { perSecond } = await load.end(loadSeconds);
      const figures = await verdict(rig);
      expect(figures.answers['401']).toBeUndefined();
      return { injected: '', perSecond, figures };
    } finally {
      await rig.stop();
      await folder.remove();
    }
  },
);
