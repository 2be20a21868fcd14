import { readdirSync, readFileSync } from 'node:fs';
import { readRunning } from '../../embedded/folder.ts';
import type { ServerName } from '../../embedded/process.ts';
import type { Bench, Figures, Measure } from '../measure.ts';
import { type Generator, type Pipeline, runBackfill, startGenerator, startPipeline } from '../pipeline.ts';
import { type BenchStack, withClient } from '../stack.ts';
import { untilNonePending, untilReceived, untilSettled } from '../warehouse.ts';
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
  const { beganAt } = await generator.send(pipeline, { count: events }, inFlight);
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

/** Milliseconds of a tick of /proc: USER_HZ is 100 on every Linux that Node runs on. */
const msOfTick = 10;

/**
 * Returns the processor time of a process and of its children so far, in milliseconds, including children
 * that have ended and were waited for. Postgres has a process for each session.
 * @throws Error on systems without Linux's /proc, or if the process is gone
 */
function processorMs(pid: number): number {
  const children = readdirSync('/proc').filter((name) => /^\d+$/.test(name) && parentOf(name) === pid);
  const { own, waited } = ticksOf(String(pid));
  const running = children.map((child) => timesOrNone(child)?.own ?? 0);
  return (own + waited + running.reduce((sum, ticks) => sum + ticks, 0)) * msOfTick;
}

/** Returns the pids of the servers that the stack started, without another Temporal that is used instead. */
function serverPids({ dir }: BenchStack): Partial<Record<ServerName, number>> {
  const servers = Object.entries(readRunning(dir)?.servers ?? {});
  return Object.fromEntries(servers.map(([name, { pid }]) => [name, pid]));
}

/** The fields of /proc/PID/stat after the name, which may contain spaces. The first is the state. */
function fieldsOf(pid: string): string[] {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  return stat.slice(stat.lastIndexOf(')') + 2).split(' ');
}

function ticksOf(pid: string): { own: number; waited: number } {
  const [user = 0, system = 0, waitedUser = 0, waitedSystem = 0] = fieldsOf(pid).slice(11, 15).map(Number);
  return { own: user + system, waited: waitedUser + waitedSystem };
}

/** Undefined if the process ended while the list of processes was read. */
function timesOrNone(pid: string): ReturnType<typeof ticksOf> | undefined {
  try {
    return ticksOf(pid);
  } catch {
    return undefined;
  }
}

function parentOf(pid: string): number | undefined {
  try {
    return Number(fieldsOf(pid)[1]);
  } catch {
    return undefined;
  }
}
