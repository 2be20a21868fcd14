import type { IncomingHttpHeaders } from 'node:http';

/**
 * Whether a change is requested by the site's own pages. Browsers say so in Sec-Fetch-Site, older ones send
 * Origin with every form; a request without either is not a browser's form and is refused. `schemes` are those by
 * which browsers reach the site: a page at the same host and port by another scheme is another site.
 */
export function fromOwnPages(headers: IncomingHttpHeaders, schemes: readonly Scheme[] = ['http']): boolean {
  const site = headers['sec-fetch-site'];
  if (site !== undefined) return site === 'same-origin';
  const { origin, host } = headers;
  if (origin === undefined || host === undefined) return false;
  return schemes.some((scheme) => origin === originOf(scheme, host));
}

export type Scheme = 'http' | 'https';

/** The schemes that a proxy in front of the site may have been asked by. Ask only about a trusted proxy. */
export function schemesBehindProxy(headers: IncomingHttpHeaders): readonly Scheme[] {
  const [said] = String(headers['x-forwarded-proto'] ?? '').split(',');
  const scheme = said?.trim().toLowerCase();
  return scheme === 'http' || scheme === 'https' ? [scheme] : ['http', 'https'];
}

const originOf = (scheme: Scheme, host: string): string | undefined =>
  URL.canParse(`${scheme}://${host}`) ? new URL(`${scheme}://${host}`).origin : undefined;
