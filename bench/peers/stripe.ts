/** The processes of stripe-sync-engine: one that runs the engine, and one that sends a load to it. */
import { createHmac } from 'node:crypto';
import { createServer, type IncomingMessage } from 'node:http';
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { serve } from '../child.ts';
import { bytesOfRequest, type LoadReport, runLoad } from '../load.ts';
import { createEvents, createWorld, worldSeed } from '../world.ts';

/** The part of the package that is used. It is not a dependency of metersync. */
interface Engine {
  runMigrations(options: { databaseUrl: string; schema: string; logger: MigrationLog }): Promise<void>;
  StripeSync: new (options: {
    schema: string;
    stripeSecretKey: string;
    stripeWebhookSecret: string;
    poolConfig: { connectionString: string; max: number };
  }) => { processWebhook(payload: Buffer, signature: string): Promise<void> };
}

/** The engine reports errors of its tables here, because `runMigrations` itself never fails. */
interface MigrationLog {
  info(): void;
  error(error: unknown): void;
}

/** Connections to Postgres. This is the engine's own default. */
const connections = 10;
const schema = 'stripe';

export type StripeCalls = ReturnType<typeof createStripe>;

function createStripe() {
  const events = createEvents(createWorld(worldSeed), worldSeed + 1);
  const firstCreated = Math.floor(Date.now() / 1000);
  let made = 0;
  let prepared: Buffer[] = [];
  return {
    /** Starts a server that answers a webhook once the engine, from the `node_modules` of a folder, has written it. */
    start: async (given: { folder: string; databaseUrl: string; secret: string }): Promise<number> => {
      // Its ESM build looks for its migrations in the wrong folder.
      const require = createRequire(join(given.folder, 'package.json'));
      const engine = require('@supabase/stripe-sync-engine') as Engine;
      const { databaseUrl, secret } = given;
      const failures: unknown[] = [];
      const logger = { info: () => {}, error: (error: unknown) => failures.push(error) };
      await engine.runMigrations({ databaseUrl, schema, logger });
      if (failures.length > 0) throw new Error(`stripe-sync-engine has no tables: ${failures[0]}`);
      const sync = new engine.StripeSync({
        schema,
        stripeSecretKey: 'sk_test_peer',
        stripeWebhookSecret: secret,
        poolConfig: { connectionString: databaseUrl, max: connections },
      });
      const take = async (request: IncomingMessage): Promise<void> =>
        await sync.processWebhook(await buffer(request), String(request.headers['stripe-signature']));
      const server = createServer((request, response) => {
        take(request).then(
          () => response.writeHead(200, { 'content-length': 0 }).end(),
          (error: unknown) => {
            console.error(String(error));
            response.writeHead(400, { 'content-length': 0 }).end();
          },
        );
      });
      await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
      return (server.address() as AddressInfo).port;
    },

    /** Makes and signs so many of Stripe's events: for each event of ours, one of its record and size. */
    prepare: async ({ secret, count }: { secret: string; count: number }): Promise<void> => {
      prepared = events.take(count).map((body) => {
        made += 1;
        return signed(secret, customerEvent(made, firstCreated + made, body));
      });
    },
    send: async ({ port, inFlight }: { port: number; inFlight: number }): Promise<LoadReport> => {
      const requests = prepared;
      prepared = [];
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
  return bytesOfRequest({ 'stripe-signature': `t=${timestamp},v1=${signature}` }, body);
}

serve(createStripe());
