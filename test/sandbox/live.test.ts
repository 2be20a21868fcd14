import { afterEach, describe, expect, it } from 'vitest';
import { until } from '../support/poll.ts';
import { type AnyRecord, type Service, startService } from './support/service.ts';

let service: Service;
afterEach(() => service.stop());
const total = async () => (await service.control<AnyRecord>('GET', '/sandbox/status')).events.total as number;

describe('live changes', () => {
  it('go on at the rate asked for until it is 0', async () => {
    service = await startService({ live: 1200 });
    await service.enableWebhooks();
    await until('changes happen by themselves', async () => (await total()) >= 10);
    expect(await service.control('POST', '/sandbox/live', { perMinute: 0 })).toEqual({ perMinute: 0 });
    await service.control('POST', '/sandbox/random', { count: 1, types: ['createDocument'] });
    const after = await total();
    await service.control('POST', '/sandbox/random', { count: 1, types: ['createDocument'] });
    expect(await total()).toBe(after + 1);
    expect(service.errors).toEqual([]);
  });
});

describe('the clock', () => {
  it('runs at its scale and is moved only forward', async () => {
    service = await startService({ timeScale: 100 });
    const now = async () =>
      Date.parse(`${(await service.control<AnyRecord>('GET', '/sandbox/status')).now}Z`);
    const [real, virtual] = [Date.now(), await now()];
    await until('a second of service time has passed', async () => (await now()) - virtual > 1000);
    expect((await now()) - virtual).toBeGreaterThan(10 * (Date.now() - real));
    const before = await now();
    await service.control('POST', '/sandbox/clock', { advanceSeconds: 3600 });
    expect((await now()) - before).toBeGreaterThanOrEqual(3_600_000);
    await expect(service.control('POST', '/sandbox/clock', { advanceSeconds: -1 })).rejects.toThrow('400');
  });
});

describe('what the control routes say of themselves', () => {
  it('GET /sandbox lists the routes and the state', async () => {
    service = await startService({});
    const { routes, state } = await service.control<AnyRecord>('GET', '/sandbox');
    expect(Object.keys(routes)).toContain('POST /sandbox/changes');
    expect(state).toMatchObject({ companies: 2, documents: 12, quiet: true });
  });
});
