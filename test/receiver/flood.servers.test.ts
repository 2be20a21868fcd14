import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, inject, onTestFinished, test } from 'vitest';
import { type RunningCommand, startCommand } from '../support/command-process.ts';
import { temporaryFolder } from '../support/folder.ts';
import { createNamespace } from '../support/namespace.ts';
import { until } from '../support/poll.ts';
import { startFlood } from './flood.ts';
import type { FloodKind } from './flood-process.ts';
import { type RawAnswer, RawConnection, requestBytes } from './raw-http.ts';
import { golden, signedHeaders } from './signing.ts';

let receiver: RunningCommand;
let port: number;
let removeFolder: () => Promise<void>;
beforeAll(async () => {
  const [namespace, folder] = await Promise.all([createNamespace(), temporaryFolder()]);
  removeFolder = () => folder.remove();
  receiver = startCommand(['receiver'], {
    env: {
      TEMPORAL_ADDRESS: inject('temporalAddress'),
      TEMPORAL_NAMESPACE: namespace,
      METERSYNC_DIR: folder.path,
      WEBHOOK_SECRETS: golden.secret,
      RECEIVER_PORT: '0',
    },
  });
  port = Number(/:(\d+)\/webhooks/.exec(await receiver.printed(/receiver: POST/))?.[1]);
});
afterAll(async () => {
  await receiver.end('SIGKILL');
  await removeFolder();
});

let sent = 0;
/** Sends one signed delivery on a socket of its own, in pieces as from a network. */
async function deliver(bytes: number): Promise<RawAnswer> {
  const body = JSON.stringify({ eventType: 'of nobody', text: 'x'.repeat(bytes) });
  const timestamp = String(Math.floor(Date.now() / 1_000));
  sent += 1;
  const request = requestBytes({ headers: signedHeaders({ id: `msg_${sent}`, timestamp, body }), body });
  const connection = await RawConnection.open(port);
  try {
    for (let at = 0; at < request.length; at += 64 * 1024) {
      connection.write(request.subarray(at, at + 64 * 1024));
      await delay(2);
    }
    return await connection.answer();
  } finally {
    connection.end();
  }
}

// More bytes than there is room for; npm run test:faults sends more, for longer (C19).
test.each<[string, FloodKind, string]>([
  ['unsigned', 'unsigned', '401'],
  ['forged, and stop two bytes short', 'forged', '503'],
  ['in 4,000 chunks of a byte, at each path', 'chunks', '411'],
])(
  '60: every signed delivery is taken beside 120 reopened connections whose bodies are %s',
  async (_what, kind, answer) => {
    const flood = startFlood(port, 120, kind);
    onTestFinished(() => flood.end());
    const answered = async () => (await flood.figures()).answers[answer] ?? 0;
    await until(`strangers are answered ${answer}`, async () => (await answered()) >= 25);
    const before = await answered();
    const statuses = await Promise.all([
      ...Array.from({ length: 12 }, () => deliver(1_500)),
      deliver(350_000),
    ]);
    expect(statuses.map(({ status }) => status)).toEqual(statuses.map(() => 204));
    await until('strangers were answered meanwhile', async () => (await answered()) > before);
  },
);
