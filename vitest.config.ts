import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { defineConfig } from 'vitest/config';
import { withoutThreads } from './test/support/command-process.ts';
import { temporaryRoot } from './test/support/temporary-root.ts';

// Node reads the folder for temporary files from this variable, here and in the processes of tests.
process.env.TMPDIR ??= temporaryRoot();

// Processes of tests keep the compiled code of Vitest and of packages in the same cache as commands.
process.env.NODE_COMPILE_CACHE ??= join(import.meta.dirname, '.metersync/compiled');

// In processes of tests, Node chooses the number of threads for V8's compiler and garbage collector by the
// number of cores. With its default of four in each process, tests on two cores took a twentieth more
// processor time.
process.env.NODE_OPTIONS = `${process.env.NODE_OPTIONS ?? ''} --v8-pool-size=0`.trim();

const servers = ['test/support/stack.ts', 'test/support/warehouse-template.ts'];

/** Settings for test files of every kind. The suffix of a file name says its kind; see CONTRIBUTING.md. */
const shared = {
  setupFiles: ['test/support/setup.ts'],
  // Test files share processes, because a new process needs a second or more to load the clients of the
  // servers.
  isolate: false,
  execArgv: ['--import', pathToFileURL(join(import.meta.dirname, 'cli/quick-start.ts')).href],
  unstubEnvs: true,
  // Workers in a process of tests run workflows in its main thread. See
  // test/support/without-promise-hooks.ts.
  env: { TEMPORAL_DEBUG: withoutThreads.TEMPORAL_DEBUG },
  // Otherwise a line that a stopping server writes while the process ends fails the run, although every test
  // passed.
  disableConsoleIntercept: true,
};

export default defineConfig({
  test: {
    // Tests often wait for real servers. On two cores, three workers left a fifth of the processor time
    // unused.
    maxWorkers: 4,
    // Node loads the files itself, as in production, and keeps them compiled. Tests do not need Vite, which
    // would transform each file in a single process, and again for each kind of test.
    experimental: { viteModuleRunner: false, nodeLoader: false },
    projects: [
      {
        test: {
          ...shared,
          name: 'plain',
          include: ['test/**/*.test.ts'],
          exclude: ['test/**/*.{servers,browser}.test.ts'],
          testTimeout: 60_000,
        },
      },
      {
        test: {
          ...shared,
          name: 'servers',
          include: ['test/**/*.servers.test.ts'],
          globalSetup: servers,
          testTimeout: 120_000,
          hookTimeout: 120_000,
        },
      },
      {
        test: {
          ...shared,
          name: 'browser',
          include: ['test/**/*.browser.test.ts'],
          globalSetup: [...servers, 'test/support/chromium.ts'],
          testTimeout: 120_000,
          hookTimeout: 120_000,
        },
      },
    ],
  },
});
