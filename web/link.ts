import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import type { FastifyReply } from 'fastify';
import { html } from 'hono/html';
import { type AssetAddresses, documentOf, pageHeaders } from './document.ts';
import { icons, type Markup } from './parts.ts';

const digestOf = (text: string): Buffer => createHash('sha256').update(text).digest();

/** Compares digests, because a comparison in constant time needs texts of equal length. */
export const isSameSecret = (one: string, other: string): boolean =>
  timingSafeEqual(digestOf(one), digestOf(other));

/** Names a link in addresses and cookies, for several sites in one browser. The name opens nothing. */
export const linkName = (token: string): string => digestOf(token).toString('hex').slice(0, 16);

const cookieName = (site: string, link: string): string => `${site}_${link}`;

/**
 * Answers a link to a site. Its token moves into a cookie, so that it does not stay in addresses, the history or
 * the referrer. The answer is a page that continues, without script: after a redirect from another site's link
 * browsers do not send a strict cookie.
 */
export async function openLink(
  reply: FastifyReply,
  assets: AssetAddresses,
  link: {
    readonly token: string;
    readonly site: 'console' | 'portal';
    /** Only requests below this path carry the cookie. */
    readonly path: string;
    readonly leadsTo: string;
    readonly title: string;
    readonly words?: Markup;
  },
): Promise<FastifyReply> {
  const { token, site, path, leadsTo, title, words } = link;
  const cookie = `${cookieName(site, linkName(token))}=${token}; Path=${path}; HttpOnly; SameSite=Strict`;
  const page = documentOf(
    assets,
    title,
    html`<main class="door"><p class="big-icon">${icons.mark}</p><h1>${title}</h1>
${words}<p><a href="${leadsTo}">Continue</a></p></main>`,
    html`<meta http-equiv="refresh" content="0; url=${leadsTo}">`,
  );
  return (
    reply
      // The address contains the token, so it must not be sent to another site as the referrer.
      .headers({ ...pageHeaders, 'referrer-policy': 'no-referrer', 'set-cookie': cookie })
      .send(String(await page))
  );
}

/** Reads the token of an opened link from the cookies of a request. */
export function tokenOf(
  { cookie = '' }: IncomingHttpHeaders,
  site: 'console' | 'portal',
  link: string,
): string | undefined {
  const name = `${cookieName(site, link)}=`;
  const pair = cookie.split(/; */).find((one) => one.startsWith(name));
  return pair?.slice(name.length);
}
