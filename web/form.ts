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
