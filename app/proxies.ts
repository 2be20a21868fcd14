import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';
import { type ProxyWay, throughProxy } from '../service/proxy.ts';
import type { Settings } from './settings.ts';
import { isThisMachine } from './transport.ts';

/** Returns the proxy for an address; undefined: it is reached directly, as this machine always is. */
export function proxyFor(address: string, { http, https, none }: Settings['proxies']): URL | undefined {
  const { protocol, hostname, port } = new URL(address);
  const host = hostname.replace(/^\[(.*)\]$/, '$1');
  const [proxy, usualPort] = protocol === 'https:' ? [https, '443'] : [http, '80'];
  const isDirect = isThisMachine(host) || none.some((entry) => covers(entry, host, port || usualPort));
  return isDirect ? undefined : proxy;
}

/** Whether an entry of NO_PROXY is a host, a domain above it, or a network around it. */
function covers(entry: string, host: string, port: string): boolean {
  if (entry === '*') return true;
  if (ipaddr.isValidCIDR(entry) && isIP(host) !== 0) {
    const network = { named: ipaddr.parseCIDR(entry) };
    return ipaddr.subnetMatch(ipaddr.process(host), network, 'other') === 'named';
  }
  const [, name = entry, only = port] = /^([^:]+|\[.+\]):(\d+)$/.exec(entry) ?? [];
  const bare = name.replace(/^\*?\.|^\[|\]$/g, '').toLowerCase();
  return only === port && (host === bare || host.endsWith(`.${bare}`));
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
