import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import type { FastifyInstance } from 'fastify';

/** Addresses of the files that pages load. */
export interface AssetAddresses {
  readonly styles: readonly string[];
  /** Loaded first: what it defines is used by the script. */
  readonly morph: string;
  readonly script: string;
}

const own = (name: string): string => new URL(`./assets/${name}`, import.meta.url).href;

/** In the order in which they are read: later ones decide. */
const styles = {
  'pico.css': import.meta.resolve('@picocss/pico/css/pico.min.css'),
  'colours.css': own('colours.css'),
  'frame.css': own('frame.css'),
  'parts.css': own('parts.css'),
  'controls.css': own('controls.css'),
  'messages.css': own('messages.css'),
};
const scripts = {
  'portal.js': own('portal.js'),
  'idiomorph.js': import.meta.resolve('idiomorph/dist/idiomorph.min.js'),
};

/**
 * Reads the portal's stylesheets and scripts, serves them below `prefix` and tells where. The address changes with
 * the content of any of them, so browsers keep them for good.
 */
export async function serveAssets(app: FastifyInstance, prefix: string): Promise<AssetAddresses> {
  const files = await Promise.all(
    Object.entries({ ...styles, ...scripts }).map(
      async ([name, at]) => [name, await readFile(new URL(at))] as const,
    ),
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
  return {
    styles: Object.keys(styles).map((name) => `${folder}/${name}`),
    morph: `${folder}/idiomorph.js`,
    script: `${folder}/portal.js`,
  };
}
