import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { promisify } from 'node:util';
import type { TestProject } from 'vitest/node';

declare module 'vitest' {
  interface ProvidedContext {
    /** Path of the browser for tests. If there is no browser, the path does not exist. */
    chromium: string;
  }
}

/** Debian's Chromium without windows. It lays out and paints in the same way, with two thirds of the work. */
const debians = '/usr/bin/chromium-headless-shell';
const known = [debians, '/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];

/**
 * Finds a Chromium, or installs Debian's if that is allowed, because that of npm packages lacks libraries.
 * Otherwise the tests that need a browser say what to install.
 */
export default async function setup(project: TestProject): Promise<void> {
  const named = process.env.CHROMIUM;
  let found = named ?? known.find((path) => existsSync(path));
  if (found === undefined && existsSync('/usr/bin/apt-get') && process.getuid?.() === 0) {
    process.stderr.write("installing Debian's chromium-headless-shell for the tests in a browser…\n");
    const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
    const apt = (...args: string[]) => promisify(execFile)('apt-get', ['--quiet=2', ...args], { env });
    await apt('update');
    await apt('install', '--yes', '--no-install-recommends', 'chromium-headless-shell');
    found = debians;
  }
  project.provide('chromium', found ?? debians);
}
