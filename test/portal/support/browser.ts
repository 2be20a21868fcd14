import { existsSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import axe from 'axe-core';
import { type BrowserContext, type BrowserContextOptions, chromium, type Page } from 'playwright-core';
import { expect, inject } from 'vitest';

const args = [
  '--headless',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

export const desktop = { width: 1280, height: 900 };
export const phone = { width: 390, height: 844 };

/** A person's browser: a profile of its own that is gone after it. */
export interface Browser {
  /** A browser that has opened nothing yet: other cookies, other history. */
  person(options?: BrowserContextOptions): Promise<BrowserContext>;
  close(): Promise<void>;
}

/** Starts a real Chromium on a fresh profile. */
export async function openBrowser(): Promise<Browser> {
  const executablePath = inject('chromium');
  if (!existsSync(executablePath)) {
    throw new Error(
      'the portal is tested in a real browser: apt-get install chromium, or name one with CHROMIUM',
    );
  }
  const browser = await chromium.launch({ executablePath, args });
  return {
    person: async (options = {}) => {
      const context = await browser.newContext({ viewport: desktop, reducedMotion: 'reduce', ...options });
      context.setDefaultTimeout(30_000);
      return context;
    },
    close: () => browser.close(),
  };
}

/** Errors of a page that nobody should see: scripts that fail, and what the content security policy refused. */
export function watchErrors(page: Page): string[] {
  const errors: string[] = [];
  page.on('pageerror', (error) => errors.push(error.message));
  page.on('console', (message) => {
    if (/content security policy|refused to/i.test(message.text())) errors.push(message.text());
  });
  return errors;
}

const screenshots = join(tmpdir(), 'metersync-portal-screenshots');

/** What a page shows in the end: it follows what happens, and the machine may be busy. */
export const eventually = <T>(read: () => T | Promise<T>) => expect.poll(read, { timeout: 30_000 });

const views = [
  { where: 'desk', size: desktop, colorScheme: 'light' },
  { where: 'phone', size: phone, colorScheme: 'dark' },
] as const;

/**
 * Looks at a page as people do: light and dark, at a desk and on a phone. Nothing reaches beyond its width, and axe
 * finds no serious violation. Leaves a picture of each in the machine's folder for temporary files.
 */
export async function expectGoodPage(page: Page, name: string): Promise<void> {
  await mkdir(screenshots, { recursive: true });
  for (const { where, size, colorScheme } of views) {
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
    await page.setViewportSize(size);
    await page.screenshot({ path: join(screenshots, `${name}-${where}-${colorScheme}.png`), fullPage: true });
    expect(await seriousViolations(page), `${name}, ${where}, ${colorScheme}`).toEqual([]);
    const beyond = await page.evaluate<number>(
      'document.documentElement.scrollWidth - document.documentElement.clientWidth',
    );
    expect(beyond, `${name}: what reaches beyond the width of a ${where}`).toBe(0);
  }
  await page.emulateMedia({ colorScheme: 'light' });
  await page.setViewportSize(desktop);
}

async function seriousViolations(page: Page): Promise<string[]> {
  await page.evaluate(axe.source);
  const run = async () => {
    const { violations } = await (globalThis as unknown as { axe: typeof axe }).axe.run();
    return violations.map(({ impact, id, nodes }) => ({ impact, id, where: nodes.map(({ html }) => html) }));
  };
  const found = await page.evaluate(run);
  return found
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .map(({ id, where }) => `${id}: ${where.join(' | ')}`);
}
