import { once } from 'node:events';
import {
  type ClientHttp2Session,
  connect,
  constants,
  createServer,
  type IncomingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2';
import type { AddressInfo } from 'node:net';

/** A proxy in front of Temporal that understands its requests. */
export interface TemporalProxy {
  /** Host and port to connect to instead. */
  readonly address: string;
  /** Polls that passed, and polls that it took and never answered. */
  readonly polls: { readonly passed: number; readonly held: number };
  /** From now on the answer to a poll begins and never ends. Everything else passes. */
  holdPolls(): void;
  /** Ends all connections and refuses new ones, as if Temporal were down. */
  leave(): Promise<void>;
}

const answered = { ':status': 200, 'content-type': 'application/grpc' } as const;

/** Passes requests on to Temporal at `target`. Polls without work end after `pollSeconds`, or a minute. */
export async function startTemporalProxy(target: string, pollSeconds: number): Promise<TemporalProxy> {
  const sessions = new Set<ServerHttp2Session | ClientHttp2Session>();
  const polls = { passed: 0, held: 0 };
  let holds = false;
  const server = createServer();
  server.on('session', (near) => {
    const far = connect(`http://${target}`);
    const end = () => {
      for (const session of [near, far]) {
        sessions.delete(session);
        session.destroy();
      }
    };
    for (const session of [near, far]) {
      sessions.add(session);
      session.on('error', end).on('close', end);
    }
    near.on('stream', (stream, headers) => {
      stream.on('error', () => {});
      if (!isPoll(headers)) return pass(stream, headers, far);
      if (holds) {
        polls.held += 1;
        return stream.respond(answered);
      }
      polls.passed += 1;
      return pass(stream, { ...headers, 'grpc-timeout': `${pollSeconds}S` }, far);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    address: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    polls,
    holdPolls: () => {
      holds = true;
    },
    leave: async () => {
      server.close();
      for (const session of sessions) session.destroy();
      await once(server, 'close');
    },
  };
}

const isPoll = ({ ':path': path }: IncomingHttpHeaders): boolean => /\/Poll\w+TaskQueue$/.test(String(path));

/** Passes a request on, and its answer back, while both sides are connected. Either may end at any moment. */
function pass(near: ServerHttp2Stream, headers: IncomingHttpHeaders, session: ClientHttp2Session): void {
  if (session.closed || session.destroyed) {
    near.close(constants.NGHTTP2_REFUSED_STREAM);
    return;
  }
  const far = session.request(headers);
  const trailers = new Promise<IncomingHttpHeaders>((arrived) => far.once('trailers', arrived));
  near.pipe(far);
  far.on('error', () => near.close(constants.NGHTTP2_INTERNAL_ERROR));
  near.on('close', () => far.close(constants.NGHTTP2_CANCEL));
  far.on('response', (answer, flags) => {
    if (near.destroyed) return far.close(constants.NGHTTP2_CANCEL);
    // A failure may be an answer with only headers.
    if ((flags & constants.NGHTTP2_FLAG_END_STREAM) !== 0) return near.respond(answer, { endStream: true });
    near.respond(answer, { waitForTrailers: true });
    near.on('wantTrailers', async () => {
      const last = await trailers;
      if (!near.destroyed) near.sendTrailers(last);
    });
    return far.pipe(near);
  });
}
