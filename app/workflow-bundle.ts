import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { bundleWorkflowCode, type WorkflowBundleOption } from '@temporalio/worker';
import type { Logger } from 'pino';

/** Prebuilt by `npm run build`; in a checkout the workflows are bundled when a worker starts. */
const prebuilt = fileURLToPath(new URL('../workflow-bundle.js', import.meta.url));

export async function workflowBundle(
  log: Pick<Logger, 'debug' | 'warn' | 'error'>,
): Promise<WorkflowBundleOption> {
  if (existsSync(prebuilt)) return { codePath: prebuilt };
  return await bundleWorkflows(log);
}

/** The workflows as one script for Temporal's sandboxed isolate. */
export async function bundleWorkflows(
  log: Pick<Logger, 'debug' | 'warn' | 'error'>,
): Promise<{ code: string }> {
  const quiet = (message: string) => log.debug(message);
  return await bundleWorkflowCode({
    workflowsPath: fileURLToPath(new URL('../workflows/registry.ts', import.meta.url)),
    logger: {
      log: (_level, message) => quiet(message),
      trace: quiet,
      debug: quiet,
      info: quiet,
      warn: (message) => log.warn(message),
      error: (message) => log.error(message),
    },
  });
}
