import type { html } from 'hono/html';

/** A piece of a page. A template escapes every value, except such pieces. */
export type Markup = ReturnType<typeof html>;
