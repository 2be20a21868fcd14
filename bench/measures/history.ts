import type { Client } from '@temporalio/client';
import { untilSettled } from '../load/journal.ts';
import { perSecond, startGenerator } from '../load/send.ts';
import type { Bench, Figures, Measure } from '../measure.ts';
import { watchMemory } from '../pipeline/memory.ts';
import { startPipeline } from '../pipeline/start.ts';
import { runBackfill, withTemporal } from '../service/backfill.ts';
import { startSandbox } from '../service/sandbox.ts';
import { withClient } from '../stack.ts';

const inFlight = 512;

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
    await runBackfill(pipeline);
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

/** Counts the events in the histories of all workflows that were started since, also running ones. */
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
