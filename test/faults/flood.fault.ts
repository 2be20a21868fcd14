import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'vitest';
import { startFlood } from '../receiver/flood.ts';
import type { FloodKind } from '../receiver/flood-process.ts';
import { deliverBody } from '../support/deliver.ts';
import { fault, say } from './fault.ts';
import { lastAttempt, readWaits } from './ledger.ts';
import type { Rig } from './rig.ts';

const floodSeconds = 60;
const connections = 500;
/** An event that the worker ignores. It is as large as the largest events of the service. */
const large = JSON.stringify({ eventType: 'of nobody', text: 'x'.repeat(350_000) });

fault({
  name: 'C19',
  title: 'strangers send 1 MiB, 4,000 chunks of a byte, or blank lines, over 500 connections, and again',
  backfill: 'before',
  strike: async ({ rig }) => {
    const alsoAcknowledged: string[] = [];
    const found: string[] = [];
    for (const kind of ['unsigned', 'forged', 'complete', 'chunks', 'blank'] as const) {
      const { waits, opened, ids, sentAgain } = await floodFor(rig, kind);
      alsoAcknowledged.push(...ids);
      const of350kB = `of ${ids.length + sentAgain} deliveries of 350 kB ${sentAgain} got 503`;
      say(`C19, ${kind}: ${JSON.stringify(waits)}; ${of350kB}`);
      found.push(`${opened} ${kind}: p99 ${waits.p99} ms${sentAgain === 0 ? '' : `, ${of350kB}`}`);
    }
    return { injected: found.join('; '), alsoAcknowledged };
  },
  // A receiver answers 503 once `answerWithinMs` is over. Shorter times depend on the machine, which also
  // sends the requests, so they are only reported.
  check: ({ answers }) => expect(Object.keys(answers)).toEqual(['204']),
});

/**
 * Lets strangers send requests for a minute, besides deliveries of the service, some of 350 kB. Requests
 * without a delivery's headers or a declared length cost the receiver nothing. With well-formed headers they
 * share the room for large bodies, and may displace a delivery, which the service sends again.
 */
async function floodFor(rig: Rig, kind: FloodKind) {
  const { databaseUrl } = rig.service;
  const flood = startFlood(Number(rig.env.RECEIVER_PORT), connections, kind);
  try {
    const before = await lastAttempt(databaseUrl);
    const until = performance.now() + floodSeconds * 1_000;
    const ids: string[] = [];
    let sentAgain = 0;
    while (performance.now() < until) {
      const { id, status } = await deliverBody(rig, large);
      expect(
        kind === 'forged' || kind === 'complete' ? [204, 503] : [204],
        `a delivery of 350 kB during the flood "${kind}"`,
      ).toContain(status);
      if (status === 204) ids.push(id);
      else sentAgain += 1;
      await delay(250);
    }
    expect(ids.length).toBeGreaterThan(0);
    const { opened, answers } = await flood.figures();
    expect(opened).toBeGreaterThan(2 * connections);
    if (kind === 'chunks') expect(Object.keys(answers)).toEqual(['411']);
    return { waits: await readWaits(databaseUrl, before), opened, ids, sentAgain };
  } finally {
    await flood.end();
  }
}
