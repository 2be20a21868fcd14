import { setTimeout as delay } from 'node:timers/promises';
import type pg from 'pg';
import { LeanSocket, type Outgoing, percentile, signedRequest } from '../load.ts';
import type { Bench, Figures, Measure } from '../measure.ts';
import { runBackfill, startPipeline, type Target } from '../pipeline.ts';
import { startSandbox } from '../sandbox.ts';
import { withClient } from '../stack.ts';

/** How often the rows are polled. This is the resolution of the figures. */
const lookEveryMs = 2;
const recordWithinMs = 30_000;
/** Pause between events, so that each event is alone. */
const restMs = 30;

export const lone: Measure = {
  name: 'lone',
  about: 'one event at a time: until its answer, its header row, and its record read from the sandbox',
  run: measureLone,
};

type Stage = 'answer' | 'row' | 'record';
type Stages = Record<Stage, number[]>;

async function measureLone(bench: Bench): Promise<Figures> {
  const companies = bench.size.loneCompanies;
  const sandbox = await startSandbox(bench, { companies, documents: 50, intervalDays: 0 });
  const service = { url: sandbox.apiUrl, apiKey: sandbox.apiKey };
  const pipeline = await startPipeline(bench, { service, filled: false });
  await runBackfill(pipeline);
  const warmUp = Math.ceil(bench.size.eventsLone / 10);
  const events = await documentEvents(sandbox, bench.size.eventsLone + warmUp);
  bench.say(`${events.length - warmUp} document events, each sent when the record of the one before is read`);
  const stages: Stages = { answer: [], row: [], record: [] };
  await withClient(pipeline.databaseUrl, async (client) => {
    const socket = new LeanSocket(pipeline.port);
    for (const [place, event] of events.entries()) {
      const times = await follow(client, socket, pipeline, event);
      if (place >= warmUp)
        for (const stage of ['answer', 'row', 'record'] as const) stages[stage].push(times[stage]);
      await delay(restMs);
    }
    socket.close();
  });
  return {
    ackP50Ms: percentile(stages.answer, 50),
    ackP99Ms: percentile(stages.answer, 99),
    rowP50Ms: percentile(stages.row, 50),
    rowP99Ms: percentile(stages.row, 99),
    recordP50Ms: percentile(stages.record, 50),
    recordP99Ms: percentile(stages.record, 99),
  };
}

/** Picks documents with one event, the newest: the service shows only the newest state. */
async function documentEvents(
  sandbox: Awaited<ReturnType<typeof startSandbox>>,
  count: number,
): Promise<Outgoing[]> {
  const newest = new Map<string, Outgoing>();
  while (newest.size < count) {
    for (const event of await sandbox.change(count, ['createDocument', 'reprocessDocument'])) {
      newest.set((JSON.parse(event.body) as { id: string }).id, event);
    }
  }
  return [...newest.values()].slice(-count);
}

/** Returns the milliseconds from sending an event to each of its stages, as seen from outside. */
async function follow(
  client: pg.Client,
  socket: LeanSocket,
  { secret }: Target,
  event: Outgoing,
): Promise<Record<Stage, number>> {
  const request = signedRequest(secret, event);
  const began = performance.now();
  const since = () => performance.now() - began;
  const status = await socket.send(request);
  if (status !== 204) throw new Error(`the event was answered ${status}`);
  const answer = since();
  let row: number | undefined;
  for (;;) {
    const { rows } = await client.query({
      name: 'stages',
      text: `select d.updated >= e.occurred_at as row, d.raw_updated >= e.occurred_at as record
        from metersync.events e join utility.documents d on d.id = e.record_id::uuid where e.id = $1`,
      values: [event.id],
    });
    if (rows[0]?.row) row ??= since();
    if (row !== undefined && rows[0]?.record) return { answer, row, record: since() };
    if (since() > recordWithinMs)
      throw new Error(`the record of event ${event.id} is not read after ${recordWithinMs} ms`);
    await delay(lookEveryMs);
  }
}
