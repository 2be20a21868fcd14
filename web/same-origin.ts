import type { IncomingHttpHeaders } from 'node:http';

/**
 * Whether a request that changes something comes from the site's own pages. Browsers say so in
 * Sec-Fetch-Site; older browsers send Origin with every form. A request without either is refused, because it
 * is not a form of a browser.
 */
export function fromOwnPages(headers: IncomingHttpHeaders): boolean {
  const site = headers['sec-fetch-site'];
  if (site !== undefined) return site === 'same-origin';
  const { origin, host } = headers;
  if (origin === undefined || host === undefined || !URL.canParse(origin)) return false;
  return new URL(origin).host === host;
}
