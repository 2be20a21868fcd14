import type { html } from 'hono/html';

/** A piece of a page. A template escapes every value that is not such a piece. */
export type Markup = ReturnType<typeof html>;
