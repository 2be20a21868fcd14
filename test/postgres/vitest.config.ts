import { resolve } from 'node:path';
import { defineConfig } from 'vitest/config';
import { temporaryRoot } from '../support/temporary-root.ts';

process.env.TMPDIR ??= temporaryRoot();

/** `npm run test:postgres` tests other versions and deployments of Postgres, one test after another. */
export default defineConfig({
  test: {
    root: resolve(import.meta.dirname, '../..'),
    include: ['test/postgres/*.postgres.ts'],
    globalSetup: ['test/support/stack.ts'],
    fileParallelism: false,
    hookTimeout: 300_000,
  },
});
