import { once } from 'node:events';
import { createServer, type RequestListener, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { ask } from '../../http/ask.ts';
import { endless } from '../support/endless.ts';

async function serve(listener: RequestListener): Promise<string> {
  const server = createServer(listener).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
}

const withinMs = 30_000;

test('returns status, headers and text of any answer, and follows no redirect', async () => {
  const url = await serve((_, response) => response.writeHead(302, { location: '/there' }).end('look there'));
  const answer = await ask(url, { withinMs });
  expect(answer).toMatchObject({ status: 302, text: 'look there', isWhole: true });
  expect(answer.headers.location).toBe('/there');
});

test('reads the start of an endless answer and then ends the connection', async () => {
  let ended: Promise<unknown> | undefined;
  const url = await serve((_, response) => {
    ended = once(response, 'close');
    endless(response, 200);
  });
  const { status, text, isWhole } = await ask(url, { withinMs, bytesMax: 1_000 });
  expect({ status, isWhole, length: text.length }).toEqual({ status: 200, isWhole: false, length: 1_000 });
  await ended;
  expect((await ask(url, { withinMs })).text.length).toBe(16 * 1024);
});

test('says that an answer of exactly the limit is whole', async () => {
  const url = await serve((_, response) => response.end('12345'));
  expect(await ask(url, { withinMs, bytesMax: 5 })).toMatchObject({ text: '12345', isWhole: true });
  expect(await ask(url, { withinMs, bytesMax: 4 })).toMatchObject({ text: '1234', isWhole: false });
});

test('keeps the status of an answer that stops coming or breaks off', async () => {
  const begin = (response: ServerResponse) => response.writeHead(503, { 'content-length': 100 }).write('bus');
  const stalls = await serve((_, response) => begin(response));
  expect(await ask(stalls, { withinMs: 300 })).toMatchObject({ status: 503, text: 'bus', isWhole: false });
  const breaksOff = await serve(async (_, response) => {
    begin(response);
    await nextTurn();
    response.destroy();
  });
  expect(await ask(breaksOff, { withinMs })).toMatchObject({ status: 503, isWhole: false });
});

test('fails with a time-out if no status comes', async () => {
  const url = await serve(() => {});
  await expect(ask(url, { withinMs: 100 })).rejects.toMatchObject({ name: 'TimeoutError' });
});
