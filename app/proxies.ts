import { type ProxyWay, throughProxy } from '../service/proxy.ts';
import type { Settings } from './settings.ts';

/** This machine, where the sandbox and receivers run. */
const near = ['localhost', '127.0.0.1', '[::1]'];

/** Returns the proxy for an address; undefined: it is reached directly, as this machine always is. */
export function proxyFor(address: string, { http, https, none }: Settings['proxies']): URL | undefined {
  const { protocol, hostname, port } = new URL(address);
  const proxy = protocol === 'https:' ? https : http;
  const usualPort = protocol === 'https:' ? '443' : '80';
  const isDirect = [...near, ...none].some((entry) => {
    const [, name = entry, only] = /^(.+):(\d+)$/.exec(entry) ?? [];
    const host = name.replace(/^\*?\./, '').toLowerCase();
    if (only !== undefined && only !== (port || usualPort)) return false;
    return entry === '*' || hostname === host || hostname.endsWith(`.${host}`);
  });
  return isDirect ? undefined : proxy;
}

/** Makes the function that returns the way to an address; undefined: directly. A proxy keeps its connections. */
export function proxyWays(proxies: Settings['proxies']): (address: string) => ProxyWay | undefined {
  const open = new Map<string, ProxyWay>();
  return (address) => {
    const proxy = proxyFor(address, proxies);
    if (proxy === undefined) return undefined;
    const way = open.get(proxy.href) ?? throughProxy(proxy);
    open.set(proxy.href, way);
    return way;
  };
}
