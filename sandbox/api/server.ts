import { isIP } from 'node:net';
import Fastify, { type FastifyInstance, type FastifyReply } from 'fastify';
import { badRequest, Problem } from '../problem.ts';

/** Matches an escaped NUL in JSON, but not an escaped backslash before `u0000`. */
const escapedNul = /(?<!\\)(?:\\\\)*\\u0000/;

/** Creates the HTTP server. Refusals are JSON `{"detail": …}`. Unexpected errors are 500 and reported. */
export function createServer(report: (error: Error) => void): FastifyInstance {
  const app = Fastify({
    bodyLimit: 64 * 1024 * 1024,
    keepAliveTimeout: 72_000,
    requestTimeout: 0,
    routerOptions: { ignoreTrailingSlash: true, caseSensitive: true },
    forceCloseConnections: true,
    // A path that is not text, such as /%zz, reaches no route.
    frameworkErrors: ({ statusCode = 400, message }, _request, reply: FastifyReply) =>
      reply.status(statusCode).send({ detail: message }),
  });
  // Postgres cannot store NUL characters.
  app.addHook('preHandler', (request, _reply, done) =>
    done(/\?.*%00/.test(request.url) ? badRequest('Parameters must not contain NUL characters.') : undefined),
  );
  // A request that declares JSON and has no body is not an error.
  const parseJson = app.getDefaultJsonParser('error', 'error');
  app.removeContentTypeParser('application/json');
  app.addContentTypeParser<string>('application/json', { parseAs: 'string' }, (request, body, done) => {
    if (body === '') done(null, undefined);
    else if (escapedNul.test(body)) done(badRequest('Values must not contain NUL characters.'));
    else parseJson(request, body, done);
  });
  app.setNotFoundHandler((_request, reply) =>
    reply.status(404).send({ detail: 'No such path: the API is under /v2.2, /v2.1 and /v2.' }),
  );
  app.setErrorHandler((error: Error & { statusCode?: number }, _request, reply) => {
    const status = error.statusCode ?? 500;
    if (status < 500) return reply.status(status).send({ detail: error.message });
    report(error);
    return reply.status(status).send({ detail: 'The sandbox failed; its log says why.' });
  });
  return app;
}

/**
 * Refuses requests whose `Host` is not a name of this sandbox, which listens on `host`. Otherwise a page of
 * another site, whose name resolves to this machine (DNS rebinding), could read the answers.
 */
export function refuseForeignHosts(app: FastifyInstance, host: string): void {
  app.addHook('onRequest', async ({ headers }) => {
    if (namesUs(headers.host, host)) return;
    throw new Problem(
      403,
      'This Host is not a name of the sandbox: ask by its address, by localhost, by the name of --host, or by a name of a private network.',
    );
  });
}

/** Names without a dot, as of containers, or below private domains: no other site can have them. */
const privateName = /^[^.]+$|\.(internal|local|localhost|test)$/;

function namesUs(header: string | undefined, host: string): boolean {
  if (header === undefined || !URL.canParse(`http://${header}`)) return false;
  const { hostname } = new URL(`http://${header}`);
  const isAddress = isIP(hostname.replace(/^\[|\]$/g, '')) !== 0;
  return isAddress || privateName.test(hostname) || hostname === host.toLowerCase();
}
