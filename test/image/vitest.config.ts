import { resolve } from 'node:path';
import { defineConfig } from 'vitest/config';
import { temporaryRoot } from '../support/temporary-root.ts';

process.env.TMPDIR ??= temporaryRoot();

/** The tree of the image, built and run: `npm run test:image`. */
export default defineConfig({
  test: {
    root: resolve(import.meta.dirname, '../..'),
    include: ['test/image/*.image.ts'],
    globalSetup: ['test/support/stack.ts'],
    testTimeout: 600_000,
    hookTimeout: 1_200_000,
  },
});
