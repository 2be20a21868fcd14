import dns from 'node:dns';
import { isIP, type LookupFunction } from 'node:net';
import ipaddr from 'ipaddr.js';
import { buildConnector } from 'undici';

/** Whether messages may be sent to an IP address. */
export type Allows = (address: string) => boolean;

/** This machine, which is also what `0.0.0.0` means, and public addresses. */
const allowedRanges: ReadonlySet<string> = new Set(['loopback', 'unspecified', 'unicast']);

/**
 * Allows this machine, public addresses and the given networks. Other addresses may trust this machine more
 * than they should trust a person who can add an endpoint: neighbours in a private network, and the metadata
 * service of a cloud, which hands out credentials.
 * @param networks for example `172.16.0.0/12`, or single addresses
 * @throws Error if one of them is neither
 */
export function allowDestinations(networks: readonly string[] = []): Allows {
  const allowed = networks.map(parseNetwork);
  return (text) => {
    const address = ipaddr.process(text);
    if (allowedRanges.has(address.range())) return true;
    return allowed.some(
      ([network, bits]) => network.kind() === address.kind() && address.match(network, bits),
    );
  };
}

function parseNetwork(text: string): [ipaddr.IPv4 | ipaddr.IPv6, number] {
  if (ipaddr.isValidCIDR(text)) return ipaddr.parseCIDR(text);
  if (!ipaddr.isValid(text)) throw new Error(`${text} is not a network, for example 172.16.0.0/12`);
  const address = ipaddr.process(text);
  return [address, address.kind() === 'ipv4' ? 32 : 128];
}

/** Connects only to allowed addresses, checked for each connection, because a name may change its address. */
export function connectorTo(
  allows: Allows,
  lookup: typeof dns.lookup = dns.lookup,
): buildConnector.connector {
  const guarded: LookupFunction = (hostname, options, done) => {
    lookup(hostname, { ...options, all: true }, (error, found) => {
      if (error) return done(error, []);
      const allowed = found.filter(({ address }) => allows(address));
      const [first] = allowed;
      if (first === undefined) return done(refusal(found[0]?.address ?? hostname), []);
      if (options.all) return done(null, allowed);
      done(null, first.address, first.family);
    });
  };
  const connect = buildConnector({ lookup: guarded });
  return (options, done) => {
    // An address is not looked up, so it is checked here.
    const { hostname } = options;
    if (isIP(hostname) !== 0 && !allows(hostname)) done(refusal(hostname), null);
    else connect(options, done);
  };
}

const refusal = (address: string): Error =>
  new Error(`${address} is neither this machine nor public. Allow it with --deliver-to.`);
