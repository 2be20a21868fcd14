import { resolve } from 'node:path';
import { defineConfig } from 'vitest/config';
import { temporaryRoot } from '../support/temporary-root.ts';

process.env.TMPDIR ??= temporaryRoot();

/** Postgres of other versions and forms, one test after another: `npm run test:postgres`. */
export default defineConfig({
  test: {
    root: resolve(import.meta.dirname, '../..'),
    include: ['test/postgres/*.postgres.ts'],
    globalSetup: ['test/support/stack.ts'],
    fileParallelism: false,
    hookTimeout: 300_000,
  },
});
