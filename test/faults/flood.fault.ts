import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'vitest';
import { startFlood } from '../receiver/flood.ts';
import type { FloodKind } from '../receiver/flood-process.ts';
import { deliverBody } from '../support/deliver.ts';
import { fault, say, seeds } from './fault.ts';
import { lastAttempt, readWaits } from './ledger.ts';
import { eventsPerSecond, startLoad } from './load.ts';
import { seedOf } from './plan.ts';
import { type Rig, startRig } from './rig.ts';
import { verdict } from './verdict.ts';

const floodSeconds = 60;
const connections = 500;
/** An event that the worker ignores. It is as large as the largest events of the service. */
const large = JSON.stringify({ eventType: 'of nobody', text: 'x'.repeat(350_000) });

fault(
  'C19',
  'strangers send 1 MiB, 4,000 chunks of a byte, or blank lines, over 500 connections, and again',
  seeds().slice(0, 1),
  {},
  async (seed) => {
    const rig = await startRig();
    const { service } = rig;
    try {
      expect(await rig.backfill()).toBe('complete');
      const load = startLoad(service, seedOf(seed, 'C19'), eventsPerSecond);
      const acknowledged: string[] = [];
      const found: string[] = [];
      for (const kind of ['unsigned', 'forged', 'complete', 'chunks', 'blank'] as const) {
        const { waits, opened, ids, sentAgain } = await floodFor(rig, kind);
        acknowledged.push(...ids);
        const of350kB = `of ${ids.length + sentAgain} deliveries of 350 kB ${sentAgain} got 503`;
        say(`C19, ${kind}: ${JSON.stringify(waits)}; ${of350kB}`);
        found.push(`${opened} ${kind}: p99 ${waits.p99} ms${sentAgain === 0 ? '' : `, ${of350kB}`}`);
      }
      const { perSecond } = await load.end();
      const figures = await verdict(rig, { alsoAcknowledged: acknowledged });
      // A receiver answers 503 once `answerWithinMs` is over. Shorter times depend on the machine, which also
      // sends the requests, so they are only reported.
      expect(Object.keys(figures.answers)).toEqual(['204']);
      return {
        injected: found.join('; '),
        perSecond,
        figures,
      };
    } finally {
      await rig.stop();
    }
  },
);

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
