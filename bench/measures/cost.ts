import { untilNonePending, untilReceived, untilSettled } from '../load/journal.ts';
import { type Generator, startGenerator } from '../load/send.ts';
import type { Bench, Figures, Measure } from '../measure.ts';
import { type Pipeline, startPipeline } from '../pipeline/start.ts';
import { processorMs, serverPids } from '../process/processor-time.ts';
import { runBackfill } from '../service/backfill.ts';
import { withClient } from '../stack.ts';
import { proveRows, record, startWarm } from './backfill.ts';

export const cost: Measure = {
  name: 'cost',
  about:
    'processor milliseconds of each process for an event, recorded or settled, and for a backfilled document (Linux)',
  run: measureCost,
};

/** Processor time of processes in milliseconds. Temporal is the development server on SQLite. */
type Times = Readonly<Record<string, number>>;

async function measureCost(bench: Bench): Promise<Figures> {
  return {
    ...(await costOfEvents(bench)),
    ...(await costOfSettledEvents(bench)),
    ...(await costOfDocuments(bench)),
  };
}

/** The numbers of deliveries at the same time, and of events. */
const loadsOf = ({ size }: Bench) => [
  { inFlight: 1, events: size.eventsLone },
  { inFlight: 16, events: size.events64 },
  { inFlight: 64, events: size.events64 },
  { inFlight: 512, events: size.events512 },
];

/** Measures events that are applied to rows without reading records again. */
async function costOfEvents(bench: Bench): Promise<Figures> {
  const { size } = bench;
  const generator = startGenerator(bench);
  const pipeline = await startPipeline(bench);
  await send(generator, pipeline, size.warmUpEvents, 512);
  let figures: Figures = {};
  for (const { inFlight, events } of loadsOf(bench)) {
    bench.say(`${events.toLocaleString('en')} events, ${inFlight} in flight`);
    const before = timesOf(bench, pipeline, generator);
    await send(generator, pipeline, events, inFlight);
    const used = since(before, timesOf(bench, pipeline, generator));
    figures = { ...figures, ...figuresOf(`InFlight${inFlight}`, used, events) };
  }
  bench.say(`${size.eventsLone} groups without an event, one after the other`);
  const before = timesOf(bench, pipeline);
  await pipeline.process.call('startEmptyGroups', size.eventsLone);
  figures = {
    ...figures,
    ...figuresOf('OfEmptyGroup', since(before, timesOf(bench, pipeline)), size.eventsLone),
  };
  await pipeline.process.stop();
  return figures;
}

/** Measures events of changed documents until they are settled: each record is read again from a cheap server. */
async function costOfSettledEvents(bench: Bench): Promise<Figures> {
  const { size } = bench;
  const service = await record(bench, size.backfillCompanies, size.backfillDocuments);
  const generator = startGenerator(bench);
  const pipeline = await startWarm(bench, service);
  await runBackfill(pipeline);
  let sent = 0;
  const settle = async (events: number, inFlight: number): Promise<Times> => {
    const changed = await service.change(events);
    const before = timesOf(bench, pipeline, generator);
    const { beganAt } = await generator.send(pipeline, changed, inFlight);
    return await withClient(pipeline.databaseUrl, async (client) => {
      await untilReceived(client, beganAt, events);
      await untilNonePending(client);
      const used = since(before, timesOf(bench, pipeline, generator));
      sent += events;
      await untilSettled(client, sent);
      return used;
    });
  };
  await settle(size.warmUpEvents, 512);
  let figures: Figures = {};
  for (const { inFlight, events } of loadsOf(bench)) {
    bench.say(`${events.toLocaleString('en')} events until they are settled, ${inFlight} in flight`);
    const used = await settle(events, inFlight);
    figures = { ...figures, ...figuresOf(`SettledInFlight${inFlight}`, used, events) };
  }
  await pipeline.process.stop();
  return figures;
}

/** Signs and sends events, and waits until all are recorded. */
async function send(generator: Generator, pipeline: Pipeline, events: number, inFlight: number) {
  const { beganAt } = await generator.send(pipeline, events, inFlight);
  await withClient(pipeline.databaseUrl, (client) => untilReceived(client, beganAt, events));
}

/** Measures documents of 3.8 kB through the workflows, new and then unchanged, from a cheap server. */
async function costOfDocuments(bench: Bench): Promise<Figures> {
  const recorded = await record(bench, bench.size.backfillCompanies, bench.size.backfillDocuments);
  const pipeline = await startWarm(bench, recorded);
  bench.say(`${recorded.documents.toLocaleString('en')} documents, then again with nothing changed`);
  const before = timesOf(bench, pipeline);
  await runBackfill(pipeline);
  const loaded = timesOf(bench, pipeline);
  await proveRows(pipeline.databaseUrl, recorded.documents);
  const checked = timesOf(bench, pipeline);
  await runBackfill(pipeline);
  const again = since(checked, timesOf(bench, pipeline));
  await pipeline.process.stop();
  return {
    ...figuresOf('OfDocument', since(before, loaded), recorded.documents),
    ...figuresOf('OfUnchanged', again, recorded.documents),
  };
}

/** Returns the processor times of all processes. The receiver and the worker are one process here, `node`. */
function timesOf({ stack }: Bench, pipeline: Pipeline, sender?: Generator): Times {
  const pids = { ...(sender && { sender: sender.pid }), node: pipeline.process.pid, ...serverPids(stack) };
  return Object.fromEntries(Object.entries(pids).map(([name, pid]) => [name, processorMs(pid)]));
}

const since = (before: Times, after: Times): Times =>
  Object.fromEntries(Object.entries(after).map(([name, ms]) => [name, ms - (before[name] ?? 0)]));

/** Returns the milliseconds for each piece of work, in all processes together and in each process. */
function figuresOf(suffix: string, times: Times, pieces: number): Figures {
  const all = Object.values(times).reduce((sum, ms) => sum + ms, 0);
  return Object.fromEntries(
    Object.entries({ all, ...times }).map(([name, ms]) => [`${name}Ms${suffix}`, ms / pieces]),
  );
}
