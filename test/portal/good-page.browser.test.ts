import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Browser, expectGoodPage, openBrowser } from '../support/browser.ts';
import { loadFonts, useFont } from '../support/fonts.ts';

let browser: Browser;

beforeAll(async () => {
  browser = await openBrowser();
});
afterAll(() => browser.close());

/** Makes a page whose first line is as wide as its text, and a line of code. */
async function pageOf(text: string, size = '1rem') {
  const page = await (await browser.person()).newPage();
  await page.setContent(`<!doctype html><html lang="en"><title>A line</title>
<style>:root { --pico-font-family-monospace: monospace } code { font-family: var(--pico-font-family-monospace) }</style>
<main><h1 style="white-space: nowrap; display: inline-block; font-size: ${size}">${text}</h1><p><code>code</code></p></main>`);
  return page;
}

test('a page is set in the fonts of the test, not in those of the machine', async () => {
  const page = await pageOf('Hamburgefonstiv');
  await loadFonts(page);
  const widths = () =>
    page.evaluate<number[]>(
      `[...document.querySelectorAll('h1, code')].map((part) => part.getBoundingClientRect().width)`,
    );
  await useFont(page, 'dejavu');
  const [text = 0, code = 0] = await widths();
  await useFont(page, 'liberation');
  const [narrowText = 0, narrowCode = 0] = await widths();
  expect(text / narrowText).toBeGreaterThan(1.1);
  expect(code).not.toBe(narrowCode);
  await useFont(page, 'liberation', 200);
  expect((await widths())[0]).toBeCloseTo(2 * narrowText, 0);
});

test('a line that is too wide in one font alone is found', async () => {
  const page = await pageOf('m'.repeat(30), '14px');
  await expect(expectGoodPage(page, 'line')).rejects.toThrow('beyond a phone in dejavu');
});

test('text that is pale in the dark alone is found', async () => {
  const page = await pageOf('A line');
  const content = '@media (prefers-color-scheme: dark) { code { color: #ccc } }';
  await page.addStyleTag({ content });
  await expect(expectGoodPage(page, 'pale')).rejects.toThrow(/pale, a phone, dark.*color-contrast/s);
});
