import { consolePolicy } from '../contract/retry-policy.ts';
import type { Health } from '../health/measured.ts';
import { remember } from '../receiver/clock.ts';

/** Makes the function that reads a deployment's health for pages: one reading serves all for some seconds. */
export const rememberHealth = (read: () => Promise<Health>): (() => Promise<Health>) =>
  remember(read, consolePolicy.healthForMs, () => performance.now());
