/** The upper limit of a service: a process with only `node:http` and every page ready in memory. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { serve } from '../process/serve.ts';

export type BarePagesCalls = ReturnType<typeof createBarePages>;

function createBarePages() {
  return {
    /** Answers each path with its bytes. Returns the port. */
    listen: async (pages: ReadonlyMap<string, Uint8Array>): Promise<number> => {
      const server = createServer((request, response) => {
        const body = pages.get(request.url ?? '');
        response.writeHead(body === undefined ? 404 : 200, {
          'content-type': 'application/json; charset=utf-8',
          'content-length': body?.length ?? 0,
        });
        response.end(body);
      });
      await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
      return (server.address() as AddressInfo).port;
    },
  };
}

serve(createBarePages());
