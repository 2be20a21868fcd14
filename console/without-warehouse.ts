import { setTimeout as wait } from 'node:timers/promises';
import { html } from 'hono/html';
import { consolePolicy } from '../contract/retry-policy.ts';
import type { Away } from '../health/measured.ts';
import type { Asking } from './asking.ts';
import type { Page } from './frame.ts';
import { nothing, text } from './parts.ts';

/**
 * Creates what a page shows, or returns why Postgres is away: it is asked if that fails or takes longer than
 * `askAfterMs`, so a server that hangs delays a page only briefly.
 */
export async function unlessAway<T>(
  { deps, health }: Pick<Asking, 'deps' | 'health'>,
  make: () => Promise<T>,
): Promise<T | Away> {
  if ('away' in health.warehouse) return health.warehouse;
  const made = make();
  const over = new AbortController();
  const asked = async (): Promise<T | Away> => {
    await wait(consolePolicy.askAfterMs, undefined, { signal: over.signal });
    return (await deps.readAbsence()) ?? (await made);
  };
  try {
    return await Promise.race([made, asked()]);
  } catch (error) {
    const absence = await deps.readAbsence();
    if (absence === undefined) throw error;
    return absence;
  } finally {
    over.abort();
  }
}

/** Takes the place of a page that needs Postgres. */
export const awayPage = ({ away, todo }: Away): Page => ({
  title: 'Without Postgres',
  live: true,
  body: html`<h1>Without Postgres</h1>${nothing('This page cannot be shown now', html`${text(away)}. <b>What to do:</b> ${text(todo)}`)}`,
});
