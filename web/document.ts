import { html } from 'hono/html';
import type { AssetAddresses } from './assets.ts';
import type { Markup } from './markup.ts';

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
