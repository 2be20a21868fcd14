import { spawnSync } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'vitest';
import { temporaryFolder } from '../support/folder.ts';
import { until } from '../support/poll.ts';
import type { TestSandbox } from '../support/sandbox.ts';
import { untilRaised } from './alarms.ts';
import { fault } from './fault.ts';
import { lastAttempt, readWaits } from './ledger.ts';
import { seedOf } from './plan.ts';
import { deliverPoison } from './poison.ts';
import type { Rig } from './rig.ts';

const loadSeconds = 20;
const [hourSeconds, daySeconds] = [3_600, 86_400];

fault({
  name: 'C9',
  title: 'deliveries come at least three times, in any order, up to 24 h late',
  prepare: async ({ service, receiverUrl, env }, _made, seed) => {
    for (const _more of [2, 3])
      await service.control('POST', 'endpoints', { url: receiverUrl, secret: env.WEBHOOK_SECRETS });
    await service.disturb({ duplicate: 0.3, shuffle: true, delayMs: [0, daySeconds * 1000], seed });
  },
  backfill: 'before',
  loadSeconds,
  strike: async () => {},
  verdict: { advanceSeconds: hourSeconds },
  check: ({ answers, events }) => expect(answers['204']).toBeGreaterThan(3.5 * events),
});

/** Returns options of Node that shift the clock of a process. */
function shiftedClock(ms: number): string {
  const code = `const Real=Date;globalThis.Date=class extends Real{constructor(...given){if(given.length===0)super(Real.now()+${ms});else super(...given)}static now(){return Real.now()+${ms}}}`;
  return `--import=data:text/javascript,${encodeURIComponent(code)}`;
}

async function restartWith(rig: Rig, part: 'receiver' | 'worker', shiftMs: number): Promise<void> {
  await rig.parts[part].stop('SIGTERM');
  rig.launch[part].env.NODE_OPTIONS = shiftMs === 0 ? '' : shiftedClock(shiftMs);
  await rig.parts[part].start();
}

fault({
  name: 'C12',
  title: "clocks differ by 4 minutes, by 6, and the worker's jumps",
  backfill: 'before',
  strike: async ({ rig, load }) => {
    const acknowledged = async () => (await rig.service.status()).deliveries.delivered;
    const said = () => rig.said('receiver').join('\n');
    for (const minutes of [4, -4]) {
      await restartWith(rig, 'receiver', minutes * 60_000);
      const before = await acknowledged();
      await until('deliveries are acknowledged', async () => (await acknowledged()) > before + 200);
    }
    await rig.parts.receiver.stop('SIGTERM');
    expect(said()).not.toContain('timestamp-');
    await restartWith(rig, 'worker', 3_600_000);
    for (const minutes of [6, -6]) {
      await restartWith(rig, 'receiver', minutes * 60_000);
      await delay(3_000);
      await rig.parts.receiver.stop('SIGTERM');
    }
    await load.end();
    expect(said()).toMatch(/timestamp-old[\s\S]*timestamp-new/);
    await restartWith(rig, 'receiver', 0);
    await restartWith(rig, 'worker', -3_600_000);
  },
  check: ({ answers }) => expect(answers['401']).toBeGreaterThan(0),
});

fault<{ readonly file: string }>({
  name: 'C13',
  title: 'the secret is rotated under load, and the receiver learns of it late',
  around: async (work) => {
    const folder = await temporaryFolder();
    try {
      return await work({}, { file: join(folder.path, 'secrets') });
    } finally {
      await folder.remove();
    }
  },
  prepare: async ({ env, launch, parts }, { file }) => {
    await writeFile(file, `${env.WEBHOOK_SECRETS}\n`);
    Object.assign(launch.receiver.env, { WEBHOOK_SECRETS_FILE: file, WEBHOOK_SECRETS: '' });
    await parts.receiver.stop('SIGTERM');
    await parts.receiver.start();
  },
  backfill: 'before',
  loadSeconds,
  strike: async ({ rig: { service }, made: { file } }) => {
    const { endpoints } = await service.control<{ endpoints: { id: string }[] }>('GET', 'endpoints');
    const path = `endpoints/${endpoints[0]?.id}/secret`;
    const rotated = await service.control<{ secret: string }>('POST', path, {});
    await delay(5_000);
    await service.advance(daySeconds / 2);
    await writeFile(file, `${rotated.secret}\n`);
    await delay(5_000);
    // From here on, nothing is signed with the old secret.
    await service.advance(daySeconds);
  },
  check: ({ answers }) => expect(answers['401']).toBeUndefined(),
});

fault({
  name: 'C14',
  title: 'the endpoint is disabled after five days of failures, enabled again and recovered',
  alarms: { must: ['Silent'] },
  // Six seconds of silence are enough, because a second without events stands for an hour.
  rig: { env: { SILENCE_HOURS: '6' } },
  backfill: 'before',
  strike: async ({ rig, seed, load }) => {
    const { service } = rig;
    rig.harm();
    await rig.parts.receiver.kill();
    const endpoint = async () =>
      (await service.control<{ endpoints: { id: string; state: string }[] }>('GET', 'endpoints'))
        .endpoints[0];
    await until(
      'the endpoint is disabled',
      async () => {
        await service.advance(6 * hourSeconds);
        return (await endpoint())?.state === 'disabled';
      },
      { timeoutMs: 300_000, everyMs: 500 },
    );
    // From here on, the service does not even attempt deliveries.
    await load.end(loadSeconds);
    expect(await service.random(1_000, seed)).toBeGreaterThan(0);
    await untilRaised(rig, 'Silent');
    await rig.parts.receiver.start();
    const id = (await endpoint())?.id ?? '';
    await service.control('POST', `endpoints/${id}/state`, { state: 'active' });
    await recover(service, id);
  },
  verdict: { advanceSeconds: hourSeconds },
  check: ({ acknowledged, events }) => expect(acknowledged).toBe(events),
});

/** Uses the service's portal to send again all deliveries that failed or were never attempted. */
async function recover(service: TestSandbox, endpointId: string): Promise<void> {
  const asked = await fetch(`${service.apiUrl}/external/configure_webhook`, {
    method: 'POST',
    headers: { 'x-api-key': service.apiKey },
  });
  const door = await fetch(((await asked.json()) as { url: string }).url, { redirect: 'manual' });
  const [cookie = '', path = ''] = (door.headers.get('set-cookie') ?? '').split('; ');
  const base = `${service.url}${path.replace('Path=', '')}`;
  for (const kind of ['failed', 'missing']) {
    const answer = await fetch(`${base}/endpoints/${endpointId}/replays`, {
      method: 'POST',
      redirect: 'manual',
      headers: { cookie, origin: service.url, 'content-type': 'application/x-www-form-urlencoded' },
      body: `kind=${kind}&when=any`,
    });
    expect(answer.status, await answer.text()).toBe(303);
    expect(answer.headers.get('location')).toContain('done=replaying');
  }
}

/** They are sent at two a second next to 200 other events, so they are one event in a hundred. */
const poisons = 40;

fault({
  name: 'C16',
  title: 'one event in a hundred cannot be applied',
  alarms: { must: ['EventsDead'] },
  backfill: 'before',
  loadSeconds,
  strike: async ({ rig, random }) => {
    const alsoAcknowledged: string[] = [];
    rig.harm();
    while (alsoAcknowledged.length < poisons) {
      alsoAcknowledged.push(await deliverPoison(rig, random));
      await delay(random.int(200, 800));
    }
    return { injected: `${poisons} events that cannot be applied`, alsoAcknowledged };
  },
  check: ({ dead }) => expect(dead).toBe(poisons),
});

const burst = 5_000;
/** The most by which the receiver's memory may grow; keeping everything received would need more. */
const growthBytesMax = 128 * 1024 * 1024;

fault({
  name: 'C17',
  title: '5,000 events come at once',
  rig: { sandbox: { deliveryConcurrency: 1_000 } },
  backfill: 'before',
  load: 'none',
  strike: async ({ rig: { service, parts }, seed }) => {
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
    // The times depend on the machine, which also sends the events, so they are only reported.
    const { p50, p99 } = await readWaits(service.databaseUrl, earlier);
    const grownMb = Math.round((most - before) / 1024 / 1024);
    return `${events} events at once; answers p50 ${p50} ms, p99 ${p99} ms; receiver +${grownMb} MB`;
  },
  // Each delivery was accepted, or was refused at once because too many were waiting. Each had an answer.
  check: ({ answers }) =>
    expect(Object.keys(answers).filter((status) => !['204', '503'].includes(status))).toEqual([]),
});

function residentBytes(pid: number): number {
  const { stdout } = spawnSync('ps', ['-o', 'rss=', '-p', String(pid)], { encoding: 'utf8' });
  return Number(stdout) * 1024;
}
