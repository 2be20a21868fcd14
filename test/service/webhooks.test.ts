import { afterEach, describe, expect, test } from 'vitest';
import { webhookConfiguration } from '../../service/webhooks.ts';
import { type Reply, ScriptedServer } from './scripted-server.ts';
import { VirtualClock } from './virtual-clock.ts';

const apiKey = 'key-that-no-error-shows';
let server: ScriptedServer | undefined;
let clock: VirtualClock;
afterEach(async () => {
  await server?.stop();
  server = undefined;
});

const against = async (reply: Reply) => {
  server = await ScriptedServer.start(() => reply);
  clock = new VirtualClock();
  return webhookConfiguration({ baseUrl: server.url, apiKey, clock });
};

describe('webhookConfiguration', () => {
  test('service.md 4: reads and sets {enabled}, with the API key, under the versioned base address', async () => {
    const webhooks = await against({ json: { enabled: true } });
    expect([await webhooks.enabled(), await webhooks.enable(true)]).toEqual([true, true]);
    expect(server?.asked.map((asked) => [asked.path, asked.headers['x-api-key']])).toEqual([
      ['/v2.2/external/configure_webhook', apiKey],
      ['/v2.2/external/configure_webhook', apiKey],
    ]);
  });

  test('finds the portal as the first address in the answer, under any name', async () => {
    const webhooks = await against({
      json: { expires: 7, appPortal: 'https://portal.example/x' },
      status: 201,
    });
    expect(await webhooks.portal()).toBe('https://portal.example/x');
  });

  test.each([
    [401, 'SERVICE_KEY_REFUSED', 'answered 401 with 39 characters'],
    [403, 'SERVICE_ACCESS_DENIED', 'answered 403 with 39 characters'],
    [500, 'SERVICE_ERROR', 'detail'],
  ])('reports a refusal with %i as %s, without the key', async (status, code, said) => {
    const webhooks = await against({ json: { detail: `no ${apiKey}` }, status });
    const error = await webhooks.portal().catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code, status, message: expect.stringContaining(said) });
    expect(String(error)).not.toContain(apiKey);
  });

  test.each([
    ['no JSON', { body: '<html>hush' }],
    ['another shape', { json: { enabled: 'yes' } }],
    ['a portal without an address', { json: { url: 'hush' } }],
  ])('reports %s as an unreadable answer', async (_name, reply) => {
    const webhooks = await against(reply);
    await expect(webhooks.enabled()).rejects.toMatchObject({ code: 'SERVICE_ANSWER_UNREADABLE' });
    await expect(webhooks.portal()).rejects.toMatchObject({
      code: 'SERVICE_ANSWER_UNREADABLE',
      message: expect.not.stringContaining('hush'),
    });
  });

  test('limits the bytes of any answer', async () => {
    const enabled = `{"enabled":true,"more":"${'x'.repeat(1024 * 1024)}"}`;
    const webhooks = await against({ body: enabled });
    const tooLong = { code: 'SERVICE_ANSWER_UNREADABLE', message: expect.stringContaining('longer than') };
    await expect(webhooks.enabled()).rejects.toMatchObject(tooLong);
    await expect(webhooks.portal()).rejects.toMatchObject(tooLong);
  });
});
