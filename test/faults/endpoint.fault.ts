import { expect } from 'vitest';
import { until } from '../support/poll.ts';
import type { TestSandbox } from '../support/sandbox.ts';
import { untilRaised } from './alarms.ts';
import { fault, seeds } from './fault.ts';
import { eventsPerSecond, startLoad } from './load.ts';
import { seedOf } from './plan.ts';
import { startRig } from './rig.ts';
import { verdict } from './verdict.ts';

const sixHours = 6 * 3_600;

fault(
  'C14',
  'the endpoint is disabled after five days of failures, enabled again and recovered',
  seeds().slice(0, 1),
  { must: ['Silent'] },
  async (seed) => {
    // Six seconds of silence are enough, because a second without events stands for an hour.
    const rig = await startRig({ env: { SILENCE_HOURS: '6' } });
    const { service } = rig;
    try {
      expect(await rig.backfill()).toBe('complete');
      rig.harm();
      await rig.parts.receiver.kill();
      const load = startLoad(service, seedOf(seed, 'C14'), eventsPerSecond);
      const endpoint = async () =>
        (await service.control<{ endpoints: { id: string; state: string }[] }>('GET', 'endpoints'))
          .endpoints[0];
      await until(
        'the endpoint is disabled',
        async () => {
          await service.advance(sixHours);
          return (await endpoint())?.state === 'disabled';
        },
        { timeoutMs: 300_000, everyMs: 500 },
      );
      // From here on, the service does not even attempt deliveries.
      const { perSecond } = await load.end(20);
      const unsent = await service.random(1_000, seed);
      await untilRaised(rig, 'Silent');
      await rig.parts.receiver.start();
      const id = (await endpoint())?.id ?? '';
      await service.control('POST', `endpoints/${id}/state`, { state: 'active' });
      await recover(service, id);
      const figures = await verdict(rig, { advanceSeconds: 3_600 });
      expect(figures.acknowledged).toBe(figures.events);
      expect(unsent).toBeGreaterThan(0);
      return { injected: '', perSecond, figures };
    } finally {
      await rig.stop();
    }
  },
);

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
