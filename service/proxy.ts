import { type Dispatcher, Pool, ProxyAgent } from 'undici';
import { requestPolicy } from '../contract/retry-policy.ts';

/** A way through a proxy. */
export interface ProxyWay {
  readonly dispatcher: Dispatcher;
  /** What an error appends to say so, without the password: ` through the proxy proxy.example:3128`. */
  readonly words: string;
}

/**
 * Opens a way through a proxy: https goes through a tunnel, http as a request to the proxy. The proxy finds the
 * address of a host.
 * @param connections at once
 * @param tunnelMs how long the proxy may take to open a tunnel
 */
export function throughProxy(
  proxy: URL,
  connections: number | null = null,
  tunnelMs: number = requestPolicy.tunnelMs,
): ProxyWay {
  const dispatcher = new ProxyAgent({
    uri: proxy.href,
    connections,
    proxyTunnel: false,
    ...loginOf(proxy),
    clientFactory: (origin, options) =>
      withOwnErrors(new Pool(origin, { ...options, headersTimeout: tunnelMs })),
  });
  return { dispatcher, words: ` through the proxy ${proxy.host}` };
}

/** The login of a proxy. undici leaves out a user without a password, as a token is. */
function loginOf({ username, password }: URL): { readonly token?: string } {
  if (username === '') return {};
  const login = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
  return { token: `Basic ${Buffer.from(login).toString('base64')}` };
}

/**
 * Has a tunnel fail with an error of its own. undici gives a refused one the code of a request that it aborted
 * itself, and asks for a cut one again at once and for ever.
 */
function withOwnErrors(pool: Pool): Pool {
  const connect = pool.connect.bind(pool);
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

const noTunnel = (reason: string, cause?: Error): Error =>
  Object.assign(new Error(`no tunnel: ${reason}`, { cause }), { code: 'EPROXY' });
