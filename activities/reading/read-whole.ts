import { limits } from '../../contract/limits.ts';
import { printedUuids } from '../../db/arrays.ts';
import { confirmsPass, judgePass, type PageManifest } from '../../service/stability.ts';

interface Pass {
  readonly manifest: readonly PageManifest[];
}

/**
 * Reads a listing until what it shows is proven to be all that there is: by one page, which cannot move while it is
 * read, that agrees with itself and lacks nothing that is `known`; or by a stable pass that the next confirms. `pass`
 * is the one that is proven, else the last; undefined where there is no such listing.
 */
export async function readWhole<P extends Pass>(
  known: readonly string[],
  read: () => Promise<P | undefined>,
): Promise<{ pass: P | undefined; whole: boolean }> {
  let before: P | undefined;
  for (let count = 1; count <= limits.passesMax; count++) {
    const now = await read();
    if (now === undefined) return { pass: before, whole: false };
    if (provesItself(now, known)) return { pass: now, whole: true };
    if (before !== undefined && confirmsPass(before.manifest, now.manifest))
      return { pass: before, whole: true };
    before = now;
  }
  return { pass: before, whole: false };
}

function provesItself({ manifest }: Pass, known: readonly string[]): boolean {
  if (manifest.length !== 1 || !judgePass(manifest).stable) return false;
  const shown = new Set(printedUuids(manifest.flatMap(({ ids }) => ids)));
  return known.every((id) => shown.has(id));
}
