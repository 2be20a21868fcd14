import { setTimeout as delay } from 'node:timers/promises';

/**
 * Waits until the condition gives a truthy value, and returns it. Otherwise throws an error that says what was waited
 * for, and the last error of the condition if it threw; a throw alone is no reason to give up.
 */
export async function until<T>(
  what: string,
  condition: () => T | Promise<T>,
  { timeoutMs = 45_000, everyMs = 25 }: { timeoutMs?: number; everyMs?: number } = {},
): Promise<NonNullable<T>> {
  const deadline = Date.now() + timeoutMs;
  for (;;) {
    let cause: unknown;
    try {
      const value = await condition();
      if (value) return value;
    } catch (error) {
      cause = error;
    }
    if (Date.now() >= deadline) throw new Error(`Waited ${timeoutMs} ms until ${what}`, { cause });
    await delay(everyMs);
  }
}
