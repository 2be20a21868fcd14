import { isUtf8 } from 'node:buffer';
import { randomBytes } from 'node:crypto';
import { lstatSync, readFileSync } from 'node:fs';
import type { IncomingHttpHeaders } from 'node:http';
import { BlockList, isIPv4, isIPv6 } from 'node:net';
import { dirname } from 'node:path';
import { makePrivateFolder, writePrivateFile, writePrivateFileOnce } from '../app/process/private-file.ts';
import type { ConsoleAccess } from '../app/settings/settings.ts';
import type { OperatorRole } from '../contract/names.ts';
import { isSameSecret, linkName, tokenOf } from '../web/link.ts';

/** Says why a request is turned away. */
export interface TurnedAway {
  readonly title?: string;
  readonly words: string;
}

interface Asked {
  readonly headers: IncomingHttpHeaders;
  /** Address at the other end of the connection. */
  readonly peer: string | undefined;
}

export type Identify = (asked: Asked) => Promise<Identity | TurnedAway>;

/** Treats whoever opened the link as an operator with the given name: only the user who runs the console has it. */
export const identifyLocal =
  (name: string, link: ConsoleLink): Identify =>
  async ({ headers }) => {
    // The name of a web page could resolve to this machine (DNS rebinding). Its requests have that Host.
    if (!isLocalHost(headers.host))
      return {
        words: 'Open the console with the address of this machine, for example http://127.0.0.1.',
      };
    const token = tokenOf(headers, 'console', linkName(link.key));
    if (token === undefined || !isSameSecret(token, link.key)) return withoutLink(link);
    return { name, role: 'operator' };
  };

/** Says where the link is. Other users of the machine may see that, but they cannot read the file. */
export const withoutLink = ({ file }: ConsoleLink): TurnedAway => ({
  title: 'Open the console with its link',
  words: `The link is in the file ${file}, which only the user who runs metersync can read.`,
});

function isLocalHost(header: string | undefined): boolean {
  if (header === undefined || !URL.canParse(`http://${header}`)) return false;
  const { hostname } = new URL(`http://${header}`);
  return hostname === 'localhost' || hostname === '[::1]' || /^127(\.\d{1,3}){3}$/.test(hostname);
}

/** Takes the user's name from the header of a trusted proxy, and turns away any other peer. */
export function identifyByProxy(access: Extract<ConsoleAccess, { by: 'proxy' }>): Identify {
  const trusted = blockListOf(access.proxies);
  return async ({ headers, peer }) => {
    if (!isAmong(trusted, peer))
      return { words: 'The console only answers the proxies in CONSOLE_TRUSTED_PROXIES.' };
    const name = textOf(headers[access.header]);
    if (name === undefined || !/^[^\p{Cc}]{1,200}$/u.test(name))
      return { words: `The proxy sent no valid user name in the header ${access.header}.` };
    return { name, role: access.operators.includes(name) ? 'operator' : 'viewer' };
  };
}

/** Proxies send names in UTF-8, but Node decodes each byte to one character. */
function textOf(header: string | readonly string[] | undefined): string | undefined {
  if (typeof header !== 'string') return undefined;
  const bytes = Buffer.from(header, 'latin1');
  return isUtf8(bytes) ? bytes.toString('utf8') : header;
}

function blockListOf(networks: readonly string[]): BlockList {
  const list = new BlockList();
  for (const network of networks) {
    const [address = '', length] = network.split('/');
    const family = isIPv4(address) ? 'ipv4' : 'ipv6';
    if (length === undefined) list.addAddress(address, family);
    else list.addSubnet(address, Number(length), family);
  }
  return list;
}

/** A server on IPv6 sees an IPv4 peer as `::ffff:10.0.0.1`. */
function isAmong(list: BlockList, peer = ''): boolean {
  const address = peer.replace(/^::ffff:(?=\d+\.)/i, '');
  if (isIPv4(address)) return list.check(address, 'ipv4');
  return isIPv6(address) && list.check(address, 'ipv6');
}

/** The link that opens the console in a browser. Without it any user of the machine could act as its operator. */
export interface ConsoleLink {
  readonly key: string;
  /** The file with the link, which only the user who runs the console can read. */
  readonly file: string;
}

/** Reads the link of a data folder's console, or makes it. Restarts keep its key, so that browsers stay signed in. */
export function readLink(file: string): ConsoleLink {
  const kept = keyIn(file);
  if (kept !== undefined) return { key: kept, file };
  const key = randomBytes(24).toString('base64url');
  makePrivateFolder(dirname(file));
  // Another console of the folder may begin at the same moment: the first one decides.
  writePrivateFileOnce(file, `${pathOf(key)}\n`);
  const made = keyIn(file);
  if (made !== undefined) return { key: made, file };
  // What is there is not a link, or somebody else may have written it.
  writePrivateFile(file, `${pathOf(key)}\n`);
  return { key, file };
}

/** Writes the link into its file, with the address at which the console listens now, and returns it. */
export function keepLink({ key, file }: ConsoleLink, url: string): string {
  const link = `${url}${pathOf(key)}`;
  // A restart on a full disk has nothing to write.
  if (readFileSync(file, 'utf8') !== `${link}\n`) writePrivateFile(file, `${link}\n`);
  return link;
}

const pathOf = (key: string): string => `/open/${key}`;

/** Reads the key from a file, if only this user can have read or written it. */
function keyIn(file: string): string | undefined {
  const stat = lstatSync(file, { throwIfNoEntry: false });
  if (!stat?.isFile() || (stat.mode & 0o077) !== 0) return undefined;
  if (process.getuid !== undefined && stat.uid !== process.getuid()) return undefined;
  return /\/open\/([\w-]{32})\n$/.exec(readFileSync(file, 'utf8'))?.[1];
}

/** The user who sent a request. */
export interface Identity {
  readonly name: string;
  readonly role: OperatorRole;
}
