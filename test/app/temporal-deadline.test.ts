import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { Client, Connection } from '@temporalio/client';
import { expect, onTestFinished, test } from 'vitest';
import { startOf } from '../../app/temporal/temporal.ts';
import { rejection } from '../service/setup.ts';

/** Statuses of gRPC for an unknown call, and for a request that no retry makes right. */
const unimplemented = '12';
const invalidArgument = '3';

/** Reads the milliseconds of a deadline in gRPC's header. */
function deadlineOf(headers: IncomingHttpHeaders): number {
  const [, digits = '', unit = ''] = /^(\d+)([HMSmun])$/.exec(String(headers['grpc-timeout'])) ?? [];
  const ms: Record<string, number> = { H: 3_600_000, M: 60_000, S: 1_000, m: 1, u: 0.001, n: 0.000_001 };
  return Number(digits) * (ms[unit] ?? Number.NaN);
}

test('each attempt to start a group carries its deadline on the wire', async () => {
  const calls: IncomingHttpHeaders[] = [];
  const server = createServer();
  server.on('stream', (stream, headers) => {
    const isStart = headers[':path']?.endsWith('/StartWorkflowExecution');
    if (isStart) calls.push(headers);
    const status = isStart ? invalidArgument : unimplemented;
    stream.on('error', () => {});
    stream.resume();
    stream.respond(
      { ':status': 200, 'content-type': 'application/grpc', 'grpc-status': status },
      { endStream: true },
    );
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const connection = Connection.lazy({ address: `127.0.0.1:${(server.address() as AddressInfo).port}` });
  onTestFinished(async () => {
    await connection.close();
    server.close();
  });
  const start = startOf(new Client({ connection }));
  for (const withinMs of [600_000, 30_000]) {
    const event = { id: 'a', timestamp: 1_700_000_000, receivedAt: '2026-01-01T00:00:00.000Z', body: '{}' };
    await rejection(start({ workflowId: 'event/a/1', group: { events: [event] }, withinMs }));
  }
  expect(calls).toHaveLength(2);
  const [first = Number.NaN, second = Number.NaN] = calls.map(deadlineOf);
  // The time until the request was written is already subtracted.
  expect(first).toBeLessThanOrEqual(600_000);
  expect(first).toBeGreaterThan(30_000);
  expect(second).toBeLessThanOrEqual(30_000);
});
