import { join } from 'node:path';
import { defineConfig } from 'vitest/config';

// Each file has a process of its own, which takes Vitest's code and that of packages compiled from where commands keep theirs.
process.env.NODE_COMPILE_CACHE ??= join(import.meta.dirname, '.metersync/compiled');

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    setupFiles: ['cli/quick-start.ts', 'test/support/seed.ts'],
    globalSetup: ['test/support/stack.ts', 'test/support/warehouse-template.ts', 'test/support/chromium.ts'],
    // Tests wait for real servers: on two cores two workers leave a third of both idle, and three are a tenth sooner done.
    maxWorkers: 3,
    testTimeout: 120_000,
    hookTimeout: 120_000,
  },
});
