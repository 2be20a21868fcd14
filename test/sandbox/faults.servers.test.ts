import { afterEach, describe, expect, test } from 'vitest';
import { forFile } from '../support/for-file.ts';
import { type AnyRecord, companiesOf, envelope, recordsOf, startService } from './support/service.ts';

let companyId: string;

const service = await forFile(startService({ companies: 1, documents: 150, intervalDays: 0 }));
[{ id: companyId }] = (await companiesOf(service)) as [AnyRecord];
const list = `/document/company/${companyId}`;
afterEach(() => service.control('DELETE', '/sandbox/faults'));

const fault = (body: object) => service.control<{ id: string }>('POST', '/sandbox/faults', body);
const walk = async () => {
  const [first, second] = [await service.api(list), await service.api(`${list}?page=2`)];
  return [envelope(first, 'documents'), envelope(second, 'documents')] as const;
};

describe('faults of the API', () => {
  test.each([
    [429, '2'],
    [429, undefined],
    [500, undefined],
    [503, 'Wed, 21 Oct 2026 07:28:00 GMT'],
  ])('can answer %i with Retry-After %s', async (status, retryAfter) => {
    await fault({ kind: 'status', status, ...(retryAfter === undefined ? {} : { retryAfter }) });
    const answer = await service.api<{ detail: string }>(list);
    expect(answer.status).toBe(status);
    expect(answer.headers.get('retry-after')).toBe(retryAfter ?? null);
    expect(answer.body.detail).toContain(String(status));
  });

  test('occur the given number of times, on the given path, in every version', async () => {
    await fault({ kind: 'status', status: 500, times: 2, path: '/document' });
    expect((await service.api(`/connection/company/${companyId}`)).status).toBe(200);
    const statuses: number[] = [];
    for (const version of ['v2', 'v2.1', 'v2.2'])
      statuses.push((await service.api(list, { version })).status);
    expect(statuses).toEqual([500, 500, 200]);
    expect(await service.control('GET', '/sandbox/faults')).toEqual({ faults: [] });
  });

  test('occur with the given probability', async () => {
    await fault({ kind: 'status', status: 502, probability: 0.5 });
    const statuses: number[] = [];
    for (let n = 0; n < 60; n++) statuses.push((await service.api('/ping')).status);
    const struck = statuses.filter((status) => status === 502).length;
    expect(struck).toBeGreaterThan(15);
    expect(struck).toBeLessThan(45);
  });

  test('end after their seconds, or when they are deleted', async () => {
    await fault({ kind: 'status', status: 500, seconds: 0 });
    expect((await service.api(list)).status).toBe(200);
    const { id } = await fault({ kind: 'status', status: 500 });
    expect((await service.api(list)).status).toBe(500);
    await service.control('DELETE', `/sandbox/faults/${id}`);
    expect((await service.api(list)).status).toBe(200);
  });

  test('can delay answers', async () => {
    await fault({ kind: 'latency', ms: [200, 250] });
    const begun = performance.now();
    expect((await service.api(list)).status).toBe(200);
    expect(performance.now() - begun).toBeGreaterThanOrEqual(199);
  });

  test.each([
    ['cut a body in the middle', 'cut'],
    ['close the connection without an answer', 'reset'],
  ])('can %s', async (_what, kind) => {
    await fault({ kind, times: 1 });
    await expect(service.api(list)).rejects.toThrow();
    expect((await service.api(list)).status).toBe(200);
  });

  test('can answer 200 without JSON', async () => {
    await fault({ kind: 'garbage', times: 1 });
    const response = await fetch(service.sandbox.apiUrl + list, {
      headers: { 'X-API-Key': service.sandbox.apiKey },
    });
    expect(response.status).toBe(200);
    expect(response.headers.get('content-type')).toContain('json');
    const text = await response.text();
    expect(() => JSON.parse(text)).toThrow();
  });

  test('can insert a record between two pages: a walk sees a record twice and the total grows', async () => {
    const [honest] = await walk();
    await fault({ kind: 'itemInserted' });
    const [first, second] = await walk();
    expect(first.total).toBe(honest.total - 1);
    expect(second.total).toBe(honest.total);
    const seen = [...first.items, ...second.items].map(({ id }) => id);
    expect(seen).toHaveLength(honest.total);
    expect(new Set(seen).size).toBe(honest.total - 1);
  });

  test('can remove a record between two pages: a walk misses a record and the total shrinks', async () => {
    const [honest] = await walk();
    await fault({ kind: 'itemRemoved' });
    const [first, second] = await walk();
    expect([first.total, second.total]).toEqual([honest.total, honest.total - 1]);
    const seen = new Set([...first.items, ...second.items].map(({ id }) => id));
    expect(seen.size).toBe(honest.total - 1);
  });

  test('can return lists and records as they were at the moment of the fault', async () => {
    const [connection] = await recordsOf(service, 'connection', companyId, 'connections');
    const path = `/connection/${connection.id}`;
    await fault({ kind: 'stale', path: '/connection' });
    await service.change({ type: 'updateConnection', connectionId: connection.id, externalId: 'newer' });
    expect((await service.api<AnyRecord>(path)).body).toEqual(connection);
    expect((await recordsOf(service, 'connection', companyId, 'connections'))[0]).toEqual(connection);
    await service.control('DELETE', '/sandbox/faults');
    expect((await service.api<AnyRecord>(path)).body.externalId).toBe('newer');
    expect((await recordsOf(service, 'connection', companyId, 'connections'))[0].externalId).toBe('newer');
    expect(service.errors).toEqual([]);
  });

  test.each([
    {},
    { kind: 'status' },
    { kind: 'status', status: 200 },
    { kind: 'status', status: 503, retryAfter: '\n' },
    { kind: 'latency', ms: 5 },
    { kind: 'latency', ms: [3e9, 3e9] },
    { kind: 'cut', path: 'x' },
  ])('refuses %j', async (body) => {
    await expect(fault(body)).rejects.toThrow('400');
  });
});
