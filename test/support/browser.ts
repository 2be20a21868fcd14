import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type axe from 'axe-core';
import {
  type BrowserContext,
  type BrowserContextOptions,
  type Browser as Chromium,
  chromium,
  type Page,
} from 'playwright-core';
import { expect, inject } from 'vitest';
import { loadFonts, restoreFonts, useFonts } from './fonts.ts';

const args = [
  '--headless',
  '--no-sandbox',
  '--disable-gpu',
  // Browsers with windows do the same. Without windows, Chromium would round the width of each letter.
  '--font-render-hinting=none',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

export const desktop = { width: 1280, height: 900 };
/** The narrowest phone that is common. */
export const phone = { width: 360, height: 780 };

/** Browsers of different people. Each person has a new profile, which is removed when the browser closes. */
export interface Browser {
  /** Makes a fresh profile, without the cookies and the history of others. */
  person(options?: BrowserContextOptions): Promise<BrowserContext>;
  close(): Promise<void>;
}

let started: Promise<Chromium> | undefined;

/** Starts the Chromium that serves all test files of a process, and ends with the process. */
function startChromium(): Promise<Chromium> {
  const executablePath = inject('chromium');
  if (!existsSync(executablePath)) {
    throw new Error(
      'the portal is tested in a real browser: apt-get install chromium-headless-shell, or name one with CHROMIUM',
    );
  }
  return chromium.launch({ executablePath, args });
}

/** Opens a real Chromium for a test file. */
export async function openBrowser(): Promise<Browser> {
  started ??= startChromium();
  const browser = await started;
  return {
    person: async (options = {}) => {
      const context = await browser.newContext({ viewport: desktop, reducedMotion: 'reduce', ...options });
      context.setDefaultTimeout(30_000);
      return context;
    },
    // A process runs one test file at a time, so all contexts belong to this file.
    close: async () => void (await Promise.all(browser.contexts().map((context) => context.close()))),
  };
}

/** Collects errors of a page: scripts that fail, and refusals by the content security policy. */
export function watchErrors(page: Page): string[] {
  const errors: string[] = [];
  page.on('pageerror', (error) => errors.push(error.message));
  page.on('console', (message) => {
    if (/content security policy|refused to/i.test(message.text())) errors.push(message.text());
  });
  return errors;
}

/** A folder for screenshots of the pages, for people to look at. If it is unset, no screenshots are made. */
const screenshots = process.env.SCREENSHOTS;

/** Waits for the final state of a page, because the page follows events and the machine may be busy. */
export const eventually = <T>(read: () => T | Promise<T>) => expect.poll(read, { timeout: 30_000 });

const views = [
  { where: 'a desk', size: desktop, textPercent: 100, colorScheme: 'light' },
  // A browser that zooms to 200 % lays the page out in half of its own width.
  { where: 'a desk zoomed to 200 %', size: { width: 640, height: 450 }, textPercent: 100 },
  { where: 'a phone', size: phone, textPercent: 100, colorScheme: 'dark' },
  { where: 'a phone with text of 200 %', size: phone, textPercent: 200 },
] as const;

/** Axe's rules about colours and sizes. All other rules judge the document, which is the same in any look. */
const rulesOfLook = ['color-contrast', 'link-in-text-block', 'scrollable-region-focusable', 'target-size'];

/**
 * Checks a page as people see it: on a desktop and on a phone, zoomed, with large text, in wide fonts.
 * Nothing may be wider than the page, and axe may find no serious violation in its light or dark look.
 */
export async function expectGoodPage(page: Page, name: string): Promise<void> {
  await loadFonts(page);
  for (const { where, size, textPercent, ...look } of views) {
    await page.setViewportSize(size);
    await useFonts(page, textPercent);
    expect(await beyondWidth(page), `${name}: what reaches beyond ${where}`).toEqual([]);
    if (!('colorScheme' in look)) continue;
    const { colorScheme } = look;
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
    if (screenshots !== undefined) {
      const picture = `${name}-${where.replaceAll(' ', '-')}-${colorScheme}.png`;
      await page.screenshot({ path: join(screenshots, picture), fullPage: true });
    }
    const found = await seriousViolations(page, colorScheme === 'dark' ? rulesOfLook : undefined);
    expect(found, `${name}, ${where}, ${colorScheme}`).toEqual([]);
  }
  await restoreFonts(page);
  await page.emulateMedia({ colorScheme: 'light' });
  await page.setViewportSize(desktop);
}

/** Lists by how many pixels a page is too wide, and its parts that are too wide. Empty if the page fits. */
const beyondWidth = (page: Page) =>
  page.evaluate<string[]>(`(() => {
    const page = document.documentElement;
    if (page.scrollWidth <= page.clientWidth) return [];
    const reach = (part) => Math.ceil(part.getBoundingClientRect().right - page.clientWidth);
    const parts = [...document.body.querySelectorAll('*')].filter((part) => reach(part) > 0);
    const widest = parts.slice(-10).map((part) => reach(part) + ' px: ' + part.outerHTML.slice(0, 100));
    return [page.scrollWidth - page.clientWidth + ' px in all', ...widest];
  })()`);

let source: string | undefined;

/** Reads the minified source of axe: each page parses it again, and a small source takes less time. */
function axeSource(): string {
  source ??= readFileSync(new URL(import.meta.resolve('axe-core/axe.min.js')), 'utf8');
  return source;
}

async function seriousViolations(page: Page, rules?: readonly string[]): Promise<string[]> {
  if (!(await page.evaluate(`'axe' in globalThis`))) await page.evaluate(axeSource());
  const run = async (runOnly: readonly string[] | undefined) => {
    // Axe describes each element of the results that it lists, which takes longer than finding the elements.
    const wanted = { resultTypes: ['violations' as const], ...(runOnly && { runOnly: [...runOnly] }) };
    const { violations } = await (globalThis as unknown as { axe: typeof axe }).axe.run(wanted);
    return violations.map(({ impact, id, nodes }) => ({ impact, id, where: nodes.map(({ html }) => html) }));
  };
  const found = await page.evaluate(run, rules);
  return found
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .map(({ id, where }) => `${id}: ${where.join(' | ')}`);
}
