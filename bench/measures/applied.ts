import { bytesOnDisk } from '../load/disk.ts';
import { journaled, proveApplied, untilJournaled } from '../load/journal.ts';
import { type Generator, perSecond, startGenerator } from '../load/send.ts';
import type { Bench, Figures, Measure } from '../measure.ts';
import type { Grouping } from '../pipeline/process.ts';
import { startBare, startPipeline } from '../pipeline/start.ts';
import { withClient } from '../stack.ts';

const inFlight = 512;

export const applied: Measure = {
  name: 'applied',
  about:
    'events applied to rows per second (journal and header row), reading again from the service being off',
  run: measureApplied,
};

async function measureApplied(bench: Bench): Promise<Figures> {
  const { size } = bench;
  const generator = startGenerator(bench);
  const bare = await startBare(bench);
  await generator.send(bare, size.warmUpEvents, inFlight);
  const before = await generator.send(bare, size.eventsApplied, inFlight);
  bench.say(`${size.eventsApplied.toLocaleString('en')} events in groups, ${inFlight} in flight`);
  const grouped = await rateOf(bench, generator, 'groups', size.eventsApplied, size.warmUpEvents);
  const after = await generator.send(bare, size.eventsApplied, inFlight);
  await bare.process.stop();
  bench.say('one workflow for each event');
  const warmUp = Math.ceil(size.eventsUngrouped / 10);
  const single = await rateOf(bench, generator, 'one-per-event', size.eventsUngrouped, warmUp);
  const reference = perSecond([before, after]);
  return {
    ofBare: grouped.rate / reference,
    timesOnePerEvent: grouped.rate / single.rate,
    perSecond: grouped.rate,
    onePerEventPerSecond: single.rate,
    barePerSecond: reference,
    bytesOnDiskPerEvent: grouped.bytesPerEvent,
  };
}

/** Returns the events per second from the first byte to the journal, and an event's bytes on disk. */
async function rateOf(
  bench: Bench,
  generator: Generator,
  grouping: Grouping,
  events: number,
  warmUp: number,
): Promise<{ rate: number; bytesPerEvent: number }> {
  const pipeline = await startPipeline(bench, { grouping });
  const measured = await withClient(pipeline.databaseUrl, async (client) => {
    await generator.send(pipeline, warmUp, inFlight);
    await untilJournaled(client, warmUp);
    const { beganAt } = await generator.send(pipeline, events, inFlight);
    const endedAt = await untilJournaled(client, warmUp + events);
    if ((await journaled(client)) !== warmUp + events)
      throw new Error('the journal has more events than were sent');
    await proveApplied(client);
    let bytes = 0;
    for (const table of ['metersync.journal', 'metersync.event_payloads'])
      bytes += await bytesOnDisk(client, table);
    return { rate: (events * 1000) / (endedAt - beganAt), bytesPerEvent: bytes / (warmUp + events) };
  });
  await pipeline.process.stop();
  return measured;
}
