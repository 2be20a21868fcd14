import { readFile } from 'node:fs/promises';
import type { Page } from 'playwright-core';

/** Two machines' fonts. Both come from packages of npm, so that every machine tests with both. */
export const fonts = {
  /** Debian's fonts and the widest common ones. */
  dejavu: { sans: 'dejavu-sans', mono: 'dejavu-mono' },
  /** Arimo and Cousine: the Liberation fonts under their original names, as wide as Arial and Courier New. */
  liberation: { sans: 'arimo', mono: 'cousine' },
} as const;

export type Font = keyof typeof fonts;
export const fontNames = Object.keys(fonts) as Font[];

const weights = [400, 700] as const;

/** No machine has a font of this name. */
const familyName = (family: string) => `test ${family}`;

interface Face {
  readonly name: string;
  readonly weight: string;
  /** The file in base64. */
  readonly bytes: string;
}

async function readFace(family: string, weight: number): Promise<Face> {
  const file = import.meta.resolve(`@fontsource/${family}/files/${family}-latin-${weight}-normal.woff2`);
  const bytes = await readFile(new URL(file), 'base64');
  return { name: familyName(family), weight: String(weight), bytes };
}

let reading: Promise<Face[]> | undefined;

/** Read once, by the first page that needs it. */
function readFaces(): Promise<Face[]> {
  const families = Object.values(fonts).flatMap(({ sans, mono }) => [sans, mono]);
  reading ??= Promise.all(families.flatMap((family) => weights.map((weight) => readFace(family, weight))));
  return reading;
}

/** Runs in a page. No content security policy forbids bytes from a script. */
const load = `async (faces) => {
  const known = [...document.fonts].map(({ family }) => family);
  for (const { name, weight, bytes } of faces) {
    if (known.includes(name)) continue;
    const face = new FontFace(name, Uint8Array.fromBase64(bytes).buffer, { weight });
    document.fonts.add(await face.load());
  }
}`;

/** Loads the fonts into a page, until it is left. */
export async function loadFonts(page: Page): Promise<void> {
  await page.evaluate(`(${load})(${JSON.stringify(await readFaces())})`);
}

/** Runs in a page. The last style sheet wins, and no content security policy forbids one made by a script. */
const dress = `(styles) => {
  globalThis.testSheet ??= new CSSStyleSheet();
  testSheet.replaceSync(styles);
  document.adoptedStyleSheets = [testSheet];
}`;

/**
 * Sets a page with loaded fonts in those of one machine, with text as large as a reader may choose. Without a
 * font, restores the page.
 */
export async function useFont(page: Page, font?: Font, textPercent = 100): Promise<void> {
  const styles = [];
  if (font !== undefined) {
    const [sans, mono] = [`"${familyName(fonts[font].sans)}"`, `"${familyName(fonts[font].mono)}"`];
    styles.push(`body, svg * { font-family: ${sans} !important }`);
    styles.push(`:root:root { --pico-font-family: ${sans} !important }`);
    styles.push(`:root:root { --pico-font-family-monospace: ${mono} !important }`);
  }
  if (textPercent !== 100) styles.push(`:root { font-size: ${textPercent}% !important }`);
  await page.evaluate(`(${dress})(${JSON.stringify(styles.join('\n'))})`);
}
