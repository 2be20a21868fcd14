/** The process that sends a load of Stripe's events: for each event of ours, one of its record and size. */
import { createHmac } from 'node:crypto';
import { createEvents } from '../load/events.ts';
import { type LoadReport, runLoad } from '../load/run.ts';
import { createWorld, worldSeed } from '../load/world.ts';
import { serve } from '../process/serve.ts';

export type StripeLoadCalls = ReturnType<typeof createStripeLoad>;

function createStripeLoad() {
  const events = createEvents(createWorld(worldSeed), worldSeed + 1);
  const firstCreated = Math.floor(Date.now() / 1000);
  let made = 0;
  let prepared: Buffer[] = [];
  return {
    /** Makes and signs this many events. */
    prepare: async ({ secret, count }: { secret: string; count: number }): Promise<void> => {
      prepared = events.take(count).map((body) => {
        made += 1;
        return signed(secret, customerEvent(made, firstCreated + made, body));
      });
    },
    send: async ({ port, inFlight }: { port: number; inFlight: number }): Promise<LoadReport> => {
      const requests = prepared;
      prepared = [];
      if (requests.length === 0) throw new Error('nothing was prepared');
      return await runLoad(port, requests, inFlight, 200);
    },
  };
}

/** Creates an update of a customer for the record of our event, later than all before, so it is written. */
function customerEvent(number: number, created: number, ours: string): string {
  const { id, meterId } = JSON.parse(ours) as { id?: string; meterId?: string };
  const customer = {
    id: `cus_${id ?? meterId}`,
    object: 'customer',
    created,
    name: `Customer ${number}`,
    balance: number,
    currency: 'usd',
    metadata: { filler: '' },
  };
  const event = {
    id: `evt_${number}`,
    object: 'event',
    type: 'customer.updated',
    api_version: '2020-08-27',
    created,
    data: { object: customer },
  };
  customer.metadata.filler = 'x'.repeat(Math.max(0, ours.length - JSON.stringify(event).length));
  return JSON.stringify(event);
}

/** Makes the bytes of a request with Stripe's signature, made now. */
function signed(secret: string, body: string): Buffer {
  const timestamp = Math.floor(Date.now() / 1000);
  const signature = createHmac('sha256', secret).update(`${timestamp}.${body}`).digest('hex');
  const head = [
    'POST /webhooks HTTP/1.1',
    'host: 127.0.0.1',
    'content-type: application/json',
    `content-length: ${Buffer.byteLength(body)}`,
    `stripe-signature: t=${timestamp},v1=${signature}`,
  ];
  return Buffer.from(`${head.join('\r\n')}\r\n\r\n${body}`);
}

serve(createStripeLoad());
