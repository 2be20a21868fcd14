import type { IncomingHttpHeaders } from 'node:http';

/**
 * Whether a change is requested by the site's own pages. Browsers say so in Sec-Fetch-Site, older ones send
 * Origin with every form; a request without either is not a browser's form and is refused.
 */
export function fromOwnPages(headers: IncomingHttpHeaders): boolean {
  const site = headers['sec-fetch-site'];
  if (site !== undefined) return site === 'same-origin';
  const { origin, host } = headers;
  if (origin === undefined || host === undefined || !URL.canParse(origin)) return false;
  return new URL(origin).host === host;
}
