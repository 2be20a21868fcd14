import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { defineConfig } from 'vitest/config';
import { withoutThreads } from './test/support/command-process.ts';
import { temporaryRoot } from './test/support/temporary-root.ts';

// What Node calls the folder for temporary files, in this process and those of tests.
process.env.TMPDIR ??= temporaryRoot();

// Processes of tests take Vitest's code and that of packages compiled from where commands keep theirs.
process.env.NODE_COMPILE_CACHE ??= join(import.meta.dirname, '.metersync/compiled');

// V8's compiler and collector get as many threads as there are cores to spare, in processes of tests. Node's four in
// each, on two cores, cost a twentieth more processor.
process.env.NODE_OPTIONS = `${process.env.NODE_OPTIONS ?? ''} --v8-pool-size=0`.trim();

const servers = ['test/support/stack.ts', 'test/support/warehouse-template.ts'];

/** What the files of a kind share. A file is of the kind that the suffix of its name says; see CONTRIBUTING.md. */
const shared = {
  setupFiles: ['test/support/setup.ts'],
  // Files share processes, as each process loads the code of servers' clients again, for a second or more.
  isolate: false,
  execArgv: ['--import', pathToFileURL(join(import.meta.dirname, 'cli/quick-start.ts')).href],
  unstubEnvs: true,
  // For workers in a test's process, and in the bench's. The promises of the former: test/support/setup.ts.
  env: { TEMPORAL_DEBUG: withoutThreads.TEMPORAL_DEBUG },
  // Else a line that a stopping server writes as its process ends fails the run, although every test passed.
  disableConsoleIntercept: true,
};

export default defineConfig({
  test: {
    // Tests wait for real servers: on two cores three workers leave a fifth of both idle.
    maxWorkers: 4,
    // Node loads the files, as it does ours in production, and keeps them compiled. Nothing here needs Vite, whose
    // one process would transform each file for each kind of tests.
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
