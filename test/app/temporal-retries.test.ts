import { once } from 'node:events';
import { createServer } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { lazyClient } from '../../app/temporal/temporal.ts';
import { rejection } from '../service/setup.ts';
import { until } from '../support/poll.ts';

test('a request that waits for its retry when its connection is closed fails without ending the process', async () => {
  let asked = 0;
  const server = createServer();
  server.on('stream', (stream) => {
    asked++;
    const unavailable = '14';
    stream.respond(
      { ':status': 200, 'content-type': 'application/grpc', 'grpc-status': unavailable },
      { endStream: true },
    );
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  const { client, close } = lazyClient({ address: `127.0.0.1:${(server.address() as AddressInfo).port}` });
  const failed = rejection(client.workflowService.getSystemInfo({}));
  await until('it was refused once', () => asked > 0);
  await close();
  expect(await failed).toMatchObject({ details: 'Channel has been shut down' });
});
