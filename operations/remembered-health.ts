import { consolePolicy } from '../contract/retry-policy.ts';
import type { Health } from '../contract/verdict.ts';
import { remember } from '../receiver/remember.ts';
import { readDeployment } from './health.ts';

/** Makes the function that reads a deployment's health for pages: one reading serves all for some seconds. */
export const rememberHealth = (options: Parameters<typeof readDeployment>[0]): (() => Promise<Health>) =>
  remember(
    () => readDeployment(options),
    consolePolicy.healthForMs,
    () => performance.now(),
  );
