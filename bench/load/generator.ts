/** The process that sends a load: it signs the events of a world in advance, and sends them on request. */
import { randomUUID } from 'node:crypto';
import { serve } from '../process/serve.ts';
import { type Change, createEvents } from './events.ts';
import { type LoadReport, runLoad } from './run.ts';
import { type Outgoing, signedRequest } from './signed.ts';
import { createWorld, worldSeed } from './world.ts';

export interface PrepareInput {
  readonly secret: string;
  /** How many new events of its world to make, and of which changes, or the events themselves. */
  readonly events: number | Drawn | readonly Outgoing[];
}

export interface Drawn {
  readonly count: number;
  readonly changes?: readonly Change[];
}

export type GeneratorCalls = ReturnType<typeof createGenerator>;

function createGenerator() {
  const events = createEvents(createWorld(worldSeed), worldSeed + 1);
  let prepared: Buffer[] = [];
  return {
    prepare: async ({ secret, events: asked }: PrepareInput): Promise<void> => {
      const drawn = typeof asked === 'number' ? { count: asked } : asked;
      const outgoing =
        'count' in drawn
          ? events.take(drawn.count, drawn.changes).map((body) => ({ id: `msg_${randomUUID()}`, body }))
          : drawn;
      prepared = outgoing.map((event) => signedRequest(secret, event));
    },
    send: async ({ port, inFlight }: { port: number; inFlight: number }): Promise<LoadReport> => {
      const requests = prepared;
      prepared = [];
      if (requests.length === 0) throw new Error('nothing was prepared');
      return await runLoad(port, requests, inFlight);
    },
  };
}

serve(createGenerator());
