import { defineConfig } from 'vitest/config';

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
