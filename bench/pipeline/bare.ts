/** The upper limit of a receiver: Fastify that only verifies a delivery, with our library, and answers. */
import type { AddressInfo } from 'node:net';
import { fastify } from 'fastify';
import { Webhook } from 'standardwebhooks';
import { serve } from '../process/serve.ts';

export type BareCalls = ReturnType<typeof createBare>;

function createBare() {
  return {
    start: async ({ secret }: { secret: string }): Promise<{ port: number }> => {
      const webhook = new Webhook(secret);
      const app = fastify({ logger: false });
      app.removeAllContentTypeParsers();
      app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body));
      app.post('/webhooks', (request, reply) => {
        webhook.verify(request.body as Buffer, request.headers as Record<string, string>, {
          jsonParse: false,
        });
        reply.code(204).send();
      });
      await app.listen({ host: '127.0.0.1', port: 0 });
      return { port: (app.server.address() as AddressInfo).port };
    },
  };
}

serve(createBare());
