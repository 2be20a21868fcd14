import { randomBytes } from 'node:crypto';
import { expect, inject, onTestFinished, test } from 'vitest';
import { type RawAnswer, RawConnection, requestBytes } from '../receiver/raw-http.ts';
import { golden, signedHeaders } from '../receiver/signing.ts';
import { startCommand } from '../support/command-process.ts';
import { temporaryFolder } from '../support/folder.ts';
import { forFile } from '../support/for-file.ts';
import { createNamespace } from '../support/namespace.ts';

const folder = await forFile(temporaryFolder());
const env = {
  TEMPORAL_ADDRESS: inject('temporalAddress'),
  TEMPORAL_NAMESPACE: await createNamespace(),
  METERSYNC_DIR: folder.path,
  WEBHOOK_SECRETS: golden.secret,
  RECEIVER_PORT: '0',
  METRICS_PORT: '0',
};

async function deliver(port: number): Promise<RawAnswer> {
  const body = '{"eventType":"of nobody"}';
  const id = `msg_${randomBytes(8).toString('hex')}`;
  const timestamp = String(Math.floor(Date.now() / 1_000));
  const connection = await RawConnection.open(port);
  connection.write(requestBytes({ headers: signedHeaders({ id, timestamp, body }), body }));
  try {
    return await connection.answer();
  } finally {
    connection.end();
  }
}

test('a receiver that may open few files accepts deliveries even if more sockets are idle', async () => {
  const receiver = startCommand(['receiver'], { env, openFilesMax: 512 });
  onTestFinished(() => void receiver.end('SIGKILL'));
  const port = Number(/:(\d+)\/webhooks/.exec(await receiver.printed(/receiver: POST/))?.[1]);
  const idle: RawConnection[] = [];
  for (let round = 0; round < 20; round += 1) {
    const opened = Array.from({ length: 50 }, () => RawConnection.open(port));
    expect((await deliver(port)).status).toBe(204);
    idle.push(...(await Promise.all(opened)));
  }
  for (const connection of idle) connection.end();
});
