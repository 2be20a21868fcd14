import type { IncomingHttpHeaders } from 'node:http';
import type { FastifyInstance, FastifyRequest } from 'fastify';

const formBytesMax = 64 * 1024;

/** Makes the routes of `app` accept no other bodies than HTML forms. */
export function takeForms(app: FastifyInstance): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser(
    'application/x-www-form-urlencoded',
    { parseAs: 'string', bodyLimit: formBytesMax },
    (_request, body, done) => {
      // Postgres cannot store NUL characters.
      if (/\0|%00/.test(String(body)))
        done(Object.assign(new Error('Fields must not contain NUL characters.'), { statusCode: 400 }));
      else done(null, new URLSearchParams(String(body)));
    },
  );
}

/** The fields of a form. A form without fields is sent without a body. */
export const formOf = ({ body }: FastifyRequest): URLSearchParams =>
  body instanceof URLSearchParams ? body : new URLSearchParams();

/** A field of a form or a query, without white space around it; '' when it is absent. */
export const field = (form: URLSearchParams, name: string): string => form.get(name)?.trim() ?? '';

/** The query of a request. A name may have several values. */
export const queryOf = ({ url }: FastifyRequest): URLSearchParams =>
  new URLSearchParams(url.includes('?') ? url.slice(url.indexOf('?') + 1) : '');

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

type Scheme = 'http' | 'https';

/** The schemes that a proxy in front of the site may have been asked by. Ask only about a trusted proxy. */
export function schemesBehindProxy(headers: IncomingHttpHeaders): readonly Scheme[] {
  const [said] = String(headers['x-forwarded-proto'] ?? '').split(',');
  const scheme = said?.trim().toLowerCase();
  return scheme === 'http' || scheme === 'https' ? [scheme] : ['http', 'https'];
}

const originOf = (scheme: Scheme, host: string): string | undefined =>
  URL.canParse(`${scheme}://${host}`) ? new URL(`${scheme}://${host}`).origin : undefined;
