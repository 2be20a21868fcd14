import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import type { FastifyInstance } from 'fastify';
import { html } from 'hono/html';
import type { Markup } from './parts.ts';

/** A page with the style that all sites share. */
export const documentOf = (assets: AssetAddresses, title: string, body: Markup, head?: Markup): Markup =>
  html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="robots" content="noindex">
<title>${title}</title>
<link rel="icon" href="data:,">
${assets.styles.map((address) => html`<link rel="stylesheet" href="${address}">`)}
<script defer src="${assets.morph}"></script>
${assets.scripts.map((address) => html`<script type="module" src="${address}"></script>`)}
${head}
</head>
<body>
${body}
</body>
</html>`;

/** Sent with every page: it loads only its site's files, no page can frame it, and no cache stores it. */
export const pageHeaders = {
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy': [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    // Icons in the stylesheets are data URLs.
    "img-src 'self' data:",
    "connect-src 'self'",
    "form-action 'self'",
    "frame-ancestors 'none'",
    "base-uri 'none'",
  ].join('; '),
  'x-content-type-options': 'nosniff',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  // Not `no-referrer`: forms would then send `Origin: null`.
  'referrer-policy': 'same-origin',
  'cache-control': 'no-store',
} as const;

/** Addresses of the files that pages load. */
export interface AssetAddresses {
  readonly styles: readonly string[];
  /** Loaded before the scripts, because they use what it defines. */
  readonly morph: string;
  readonly scripts: readonly string[];
}

/** Files of one site. Keys are the names under which files are served, and values are their file URLs. */
export interface Assets {
  /** In the order in which pages load them: later styles take precedence. */
  readonly styles: Readonly<Record<string, string>>;
  readonly scripts: Readonly<Record<string, string>>;
}

const own = (name: string): string => new URL(`./assets/${name}`, import.meta.url).href;

/** Stylesheets that all sites share. */
const styles = {
  'pico.css': import.meta.resolve('@picocss/pico/css/pico.min.css'),
  'colours.css': own('colours.css'),
  'frame.css': own('frame.css'),
  'parts.css': own('parts.css'),
  'controls.css': own('controls.css'),
  'tables.css': own('tables.css'),
};
const morph = { 'idiomorph.js': import.meta.resolve('idiomorph/dist/idiomorph.min.js') };
const page = { 'page.js': own('page.js') };

/** Serves the shared files and the site's below `prefix`. Addresses have a hash, so caches keep them. */
export async function serveAssets(
  app: FastifyInstance,
  prefix: string,
  site: Assets,
): Promise<AssetAddresses> {
  const all = { ...styles, ...site.styles, ...morph, ...page, ...site.scripts };
  const files = await Promise.all(
    Object.entries(all).map(async ([name, at]) => [name, await readFile(new URL(at))] as const),
  );
  const hash = createHash('sha256');
  for (const [, content] of files) hash.update(content);
  const folder = `${prefix}/${hash.digest('hex').slice(0, 12)}`;
  for (const [name, content] of files) {
    app.get(`${folder}/${name}`, (_request, reply) =>
      reply
        .headers({
          'content-type': `${name.endsWith('.css') ? 'text/css' : 'text/javascript'}; charset=utf-8`,
          'cache-control': 'public, max-age=31536000, immutable',
          'x-content-type-options': 'nosniff',
          'cross-origin-resource-policy': 'same-origin',
        })
        .send(content),
    );
  }
  const addresses = (names: object) => Object.keys(names).map((name) => `${folder}/${name}`);
  return {
    styles: addresses({ ...styles, ...site.styles }),
    morph: `${folder}/idiomorph.js`,
    scripts: addresses({ ...page, ...site.scripts }),
  };
}
