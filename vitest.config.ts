import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    globalSetup: ['test/support/stack.ts', 'test/support/warehouse-template.ts', 'test/support/chromium.ts'],
    // Two cores: more workers only make real servers wait for one another.
    maxWorkers: 2,
    testTimeout: 120_000,
    hookTimeout: 120_000,
  },
});
