/** The process that sends a load: it signs the events of a world in advance, and sends them on request. */
import { randomUUID } from 'node:crypto';
import { serve } from './child.ts';
import { type LoadReport, type Outgoing, runLoad, signedRequest } from './load.ts';
import { type Change, createEvents, createWorld, worldSeed } from './world.ts';

export interface PrepareInput {
  readonly secret: string;
  /** How many new events of its world to make, and of which changes, or the events themselves. */
  readonly events: { readonly count: number; readonly changes?: readonly Change[] } | readonly Outgoing[];
}

export type GeneratorCalls = ReturnType<typeof createGenerator>;

function createGenerator() {
  const world = createEvents(createWorld(worldSeed), worldSeed + 1);
  let prepared: Buffer[] = [];
  return {
    prepare: async ({ secret, events }: PrepareInput): Promise<void> => {
      const outgoing =
        'count' in events
          ? world.take(events.count, events.changes).map((body) => ({ id: `msg_${randomUUID()}`, body }))
          : events;
      prepared = outgoing.map((event) => signedRequest(secret, event));
    },
    send: async ({ port, inFlight }: { port: number; inFlight: number }): Promise<LoadReport> => {
      const requests = prepared;
      prepared = [];
      return await runLoad(port, requests, inFlight);
    },
  };
}

serve(createGenerator());
