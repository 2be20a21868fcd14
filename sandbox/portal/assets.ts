import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import type { FastifyInstance } from 'fastify';

/** Addresses of the files that pages load. They change with the content, so browsers keep them for good. */
export interface AssetAddresses {
  readonly pico: string;
  readonly style: string;
  readonly script: string;
}

const files = {
  pico: { at: import.meta.resolve('@picocss/pico/css/pico.min.css'), type: 'text/css; charset=utf-8' },
  style: { at: new URL('./assets/portal.css', import.meta.url), type: 'text/css; charset=utf-8' },
  script: { at: new URL('./assets/portal.js', import.meta.url), type: 'text/javascript; charset=utf-8' },
} as const;

/** Reads the portal's stylesheets and script, serves them below `prefix` and tells where. */
export async function serveAssets(app: FastifyInstance, prefix: string): Promise<AssetAddresses> {
  const serve = async (name: keyof typeof files): Promise<string> => {
    const { at, type } = files[name];
    const content = await readFile(new URL(at));
    const hash = createHash('sha256').update(content).digest('hex').slice(0, 12);
    const address = `${prefix}/${hash}-${name}`;
    app.get(address, (_request, reply) =>
      reply
        .headers({
          'content-type': type,
          'cache-control': 'public, max-age=31536000, immutable',
          'x-content-type-options': 'nosniff',
          'cross-origin-resource-policy': 'same-origin',
        })
        .send(content),
    );
    return address;
  };
  return { pico: await serve('pico'), style: await serve('style'), script: await serve('script') };
}
