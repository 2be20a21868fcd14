import { setTimeout as delay } from 'node:timers/promises';
import type { Client } from '@temporalio/client';
import type pg from 'pg';
import { perSecond, startGenerator } from '../load/send.ts';
import { type Bench, type Figures, type Measure, median } from '../measure.ts';
import { type Pipeline, startPipeline } from '../pipeline/start.ts';
import { runBackfill, withTemporal } from '../service/backfill.ts';
import { startSandbox } from '../service/sandbox.ts';
import { withClient } from '../stack.ts';

const inFlight = 512;
const settledWithinMs = 180_000;
const lookEveryMs = 250;

export const history: Measure = {
  name: 'history',
  about:
    "Temporal's history events for 1,000 webhook events, with everything read again from the sandbox; memory",
  run: measureHistory,
};

async function measureHistory(bench: Bench): Promise<Figures> {
  const { historyChanges, historyCompanies } = bench.size;
  const sandbox = await startSandbox(bench, { companies: historyCompanies, documents: 60, intervalDays: 2 });
  const service = { url: sandbox.apiUrl, apiKey: sandbox.apiKey };
  const pipeline = await startPipeline(bench, { service, filled: false });
  return await withTemporal(pipeline.temporal, async (client) => {
    await runBackfill(client);
    const events = await sandbox.change(historyChanges);
    bench.say(
      `${events.length.toLocaleString('en')} events of the sandbox, ${inFlight} in flight, until nothing is pending`,
    );
    const generator = startGenerator(bench);
    const beganAt = new Date();
    const memory = watchMemory(pipeline);
    const report = await generator.send(pipeline, events, inFlight);
    const settledAt = await withClient(pipeline.databaseUrl, (db) => untilSettled(db, events.length));
    const used = await memory.stop();
    const historyEvents = await countHistory(client, beganAt);
    return {
      eventsPer1000: (historyEvents * 1000) / events.length,
      settledPerSecond: (events.length * 1000) / (settledAt - report.beganAt),
      acknowledgedPerSecond: perSecond([report]),
      ...used,
    };
  });
}

/** Waits until every event is in the journal and none is pending; returns when, in Unix milliseconds. */
async function untilSettled(db: pg.Client, events: number): Promise<number> {
  for (const deadline = Date.now() + settledWithinMs; ; ) {
    const { rows } =
      await db.query(`select count(*)::int as all, count(*) filter (where outcome = 'pending')::int as pending,
      count(*) filter (where outcome in ('dead', 'ignored'))::int as lost from metersync.events`);
    const { all, pending, lost } = rows[0];
    if (lost > 0) throw new Error(`${lost} events are dead or ignored`);
    if (all === events && pending === 0) return Date.now();
    if (Date.now() > deadline)
      throw new Error(`not settled: ${all} of ${events} events in the journal, ${pending} pending`);
    await delay(lookEveryMs);
  }
}

/** Follows the memory of receiver and worker; at its end, says how it grew over the second half. */
function watchMemory({ process }: Pipeline): { stop(): Promise<Record<string, number>> } {
  const bytes: number[] = [];
  let over = false;
  const watching = (async () => {
    while (!over) {
      bytes.push(await process.call('memory', undefined));
      await delay(lookEveryMs);
    }
  })();
  const megabytes = (from: number, to: number) => {
    const first = Math.floor(bytes.length * from);
    return median(bytes.slice(first, Math.max(first + 1, Math.ceil(bytes.length * to)))) / 1e6;
  };
  return {
    stop: async () => {
      over = true;
      await watching;
      const [start, middle, end] = [megabytes(0, 0.1), megabytes(0.45, 0.55), megabytes(0.9, 1)];
      return { rssStartMb: start, rssMiddleMb: middle, rssEndMb: end, rssGrowthMb: end - middle };
    },
  };
}

/** Events in the histories of every workflow that was started since, those that still run included. */
async function countHistory(client: Client, since: Date): Promise<number> {
  let events = 0;
  const query = `StartTime >= "${since.toISOString()}"`;
  for await (const { workflowId, runId } of client.workflow.list({ query })) {
    const { historyLength } = await client.workflow.getHandle(workflowId, runId).describe();
    events += historyLength;
  }
  if (events === 0) throw new Error('no workflow was found');
  return events;
}
