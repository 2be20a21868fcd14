import { type Dispatcher, EnvHttpProxyAgent, Pool } from 'undici';
import { requestPolicy } from '../contract/retry-policy.ts';

/** The proxies of requests to https and http addresses, and the hosts that need none, as NO_PROXY has them. */
export interface Proxies {
  readonly https: URL | undefined;
  readonly http: URL | undefined;
  readonly none: string;
}

/** This machine, which a proxy cannot reach. */
const here = ['localhost', '127.0.0.1', '[::1]'];

/**
 * Opens the way through proxies; undefined if there are none. Requests to https addresses go through a
 * tunnel, which a proxy has `tunnelMs` to open. Requests to http addresses are sent to the proxy.
 */
export function throughProxies(
  { https, http, none }: Proxies,
  connections: number | null = null,
  tunnelMs: number = requestPolicy.tunnelMs,
): Dispatcher | undefined {
  if ((https === undefined && http === undefined) || none.trim() === '*') return undefined;
  return new EnvHttpProxyAgent({
    // Empty, so that undici does not read the environment.
    httpsProxy: https?.href ?? '',
    httpProxy: http?.href ?? '',
    noProxy: [none, ...here].join(','),
    connections,
    proxyTunnel: false,
    ...loginOf(https ?? http),
    clientFactory: (origin, options) =>
      withOwnErrors(new Pool(origin, { ...options, headersTimeout: tunnelMs }), new URL(origin).host),
  });
}

/** The login of a proxy without a password, such as a token, which undici would leave out. */
function loginOf(proxy: URL | undefined): { readonly token?: string } {
  if (proxy === undefined || proxy.username === '' || proxy.password !== '') return {};
  return { token: `Basic ${Buffer.from(`${decodeURIComponent(proxy.username)}:`).toString('base64')}` };
}

/**
 * Makes a tunnel fail with an error that names the proxy. undici itself reports a refused tunnel as an
 * aborted request, and it requests a tunnel that was cut again at once, forever.
 */
function withOwnErrors(pool: Pool, proxy: string): Pool {
  const connect = pool.connect.bind(pool);
  const noTunnel = (reason: string, cause?: Error): Error =>
    Object.assign(new Error(`no tunnel through the proxy ${proxy}: ${reason}`, { cause }), {
      code: 'EPROXY',
    });
  const tunnel = async (options: Dispatcher.ConnectOptions): Promise<Dispatcher.ConnectData> => {
    const answer = await connect(options).catch((error: Error) => {
      throw noTunnel(error.message, error);
    });
    if (answer.statusCode === 200) return answer;
    answer.socket.on('error', () => {}).destroy();
    throw noTunnel(`it answered ${answer.statusCode}`);
  };
  return Object.assign(pool, { connect: tunnel });
}
