/** The process of stripe-sync-engine: a server that answers a webhook once the engine has written it. */
import { createServer, type IncomingMessage } from 'node:http';
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { serve } from '../process/serve.ts';

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

export type StripeSyncCalls = ReturnType<typeof createStripeSync>;

function createStripeSync() {
  return {
    /** @param folder whose `node_modules` have the package */
    start: async (given: {
      folder: string;
      databaseUrl: string;
      secret: string;
    }): Promise<{ port: number }> => {
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
      return { port: (server.address() as AddressInfo).port };
    },
  };
}

serve(createStripeSync());
