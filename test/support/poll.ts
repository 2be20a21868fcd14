import { setTimeout as delay } from 'node:timers/promises';

/** Bounds of the pause between two tries of the condition. The pause is a twentieth of the wait so far. */
const pauseMs = { least: 25, most: 250 };

/**
 * Waits until the condition returns a truthy value, and returns it; an error counts as not yet.
 * @throws Error at the time-out that says what was waited for, with the condition's last error
 */
export async function until<T>(
  what: string,
  condition: () => T | Promise<T>,
  { timeoutMs = 45_000, everyMs }: { timeoutMs?: number; everyMs?: number } = {},
): Promise<NonNullable<T>> {
  const began = Date.now();
  const deadline = began + timeoutMs;
  for (;;) {
    let cause: unknown;
    try {
      const value = await condition();
      if (value) return value;
    } catch (error) {
      cause = error;
    }
    if (Date.now() >= deadline) throw new Error(`Waited ${timeoutMs} ms until ${what}`, { cause });
    const { least, most } = pauseMs;
    await delay(everyMs ?? Math.min(most, Math.max(least, (Date.now() - began) / 20)));
  }
}
