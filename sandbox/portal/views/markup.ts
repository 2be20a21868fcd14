import type { html } from 'hono/html';

/** A piece of a page. Whatever a template is given is escaped, unless it is such a piece itself. */
export type Markup = ReturnType<typeof html>;
