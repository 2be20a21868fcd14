import { isIPv4, isIPv6 } from 'node:net';

export type ConsoleAccess =
  | { readonly by: 'loopback' }
  /** A proxy names the user in a header; no other peer may send it. */
  | {
      readonly by: 'proxy';
      readonly header: string;
      readonly proxies: readonly string[];
      readonly operators: readonly string[];
    };

interface Environment {
  readonly CONSOLE_HOST: string;
  readonly CONSOLE_USER_HEADER?: string | undefined;
  readonly CONSOLE_TRUSTED_PROXIES: readonly string[];
  readonly CONSOLE_OPERATORS: readonly string[];
}

export function accessOf(e: Environment): ConsoleAccess {
  if (e.CONSOLE_USER_HEADER !== undefined)
    return {
      by: 'proxy',
      header: e.CONSOLE_USER_HEADER.toLowerCase(),
      proxies: e.CONSOLE_TRUSTED_PROXIES,
      operators: e.CONSOLE_OPERATORS,
    };
  return { by: 'loopback' };
}

/** Lists what is wrong with the settings of the console. Other machines need a proxy to reach it. */
export function problemsOfConsole(e: Environment): readonly string[] {
  const { CONSOLE_HOST: host, CONSOLE_USER_HEADER: header, CONSOLE_TRUSTED_PROXIES: proxies } = e;
  if (header !== undefined && proxies.length === 0)
    return [
      'CONSOLE_TRUSTED_PROXIES has to be set together with CONSOLE_USER_HEADER: otherwise anybody could send that header',
    ];
  if (header === undefined && proxies.length + e.CONSOLE_OPERATORS.length > 0)
    return [
      'CONSOLE_USER_HEADER has to be set together with CONSOLE_TRUSTED_PROXIES or CONSOLE_OPERATORS: otherwise they restrict nobody',
    ];
  if (accessOf(e).by === 'loopback' && !isLoopback(host))
    return [
      `CONSOLE_HOST is ${host}, which other machines reach: put a proxy that logs users in before it, and set CONSOLE_USER_HEADER and CONSOLE_TRUSTED_PROXIES`,
    ];
  return [];
}

const isLoopback = (host: string): boolean =>
  host === 'localhost' || host === '::1' || /^127(\.\d{1,3}){3}$/.test(host);

/** Whether a text is an address, or a network such as `10.0.0.0/8`. */
export function isNetwork(text: string): boolean {
  const [address = '', length, ...more] = text.split('/');
  const bits = isIPv4(address) ? 32 : isIPv6(address) ? 128 : 0;
  if (bits === 0 || more.length > 0) return false;
  return length === undefined || (/^\d{1,3}$/.test(length) && Number(length) <= bits);
}
