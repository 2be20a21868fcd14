import { readFile } from 'node:fs/promises';
import type { Page } from 'playwright-core';

/** DejaVu, the widest common fonts: text that fits here fits elsewhere. npm has them for every machine. */
const fonts = { sans: 'dejavu-sans', mono: 'dejavu-mono' } as const;

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

/** Reads the files once, for the first page that needs them. */
function readFaces(): Promise<Face[]> {
  const families = Object.values(fonts);
  reading ??= Promise.all(families.flatMap((family) => weights.map((weight) => readFace(family, weight))));
  return reading;
}

/** Runs in a page. Content security policies allow fonts that a script makes from bytes. */
const load = `async (faces) => {
  const known = [...document.fonts].map(({ family }) => family);
  for (const { name, weight, bytes } of faces) {
    if (known.includes(name)) continue;
    const face = new FontFace(name, Uint8Array.fromBase64(bytes).buffer, { weight });
    document.fonts.add(await face.load());
  }
}`;

/** Runs in a page. The last style sheet wins, and content security policies allow sheets made by scripts. */
const dress = `(styles) => {
  globalThis.testSheet ??= new CSSStyleSheet();
  testSheet.replaceSync(styles);
  document.adoptedStyleSheets = [testSheet];
}`;

/** Loads the fonts into a page. They stay until the browser leaves the page. */
export async function loadFonts(page: Page): Promise<void> {
  await page.evaluate(`(${load})(${JSON.stringify(await readFaces())})`);
}

/** Shows a page in the loaded fonts, with text as large as a reader may choose. */
export async function useFonts(page: Page, textPercent: number): Promise<void> {
  const [sans, mono] = [`"${familyName(fonts.sans)}"`, `"${familyName(fonts.mono)}"`];
  await restyle(page, [
    `body, svg * { font-family: ${sans} !important }`,
    `:root:root { --pico-font-family: ${sans} !important }`,
    `:root:root { --pico-font-family-monospace: ${mono} !important }`,
    ...(textPercent === 100 ? [] : [`:root { font-size: ${textPercent}% !important }`]),
  ]);
}

/** Shows a page in its own fonts again. */
export const restoreFonts = (page: Page): Promise<void> => restyle(page, []);

const restyle = async (page: Page, styles: readonly string[]): Promise<void> => {
  await page.evaluate(`(${dress})(${JSON.stringify(styles.join('\n'))})`);
};
