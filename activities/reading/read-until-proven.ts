import { attemptPolicy } from '../../contract/retry-policy.ts';
import { printedUuids } from '../../db/connection/arrays.ts';
import { confirmsPass, judgePass, type PageManifest } from '../../service/stability.ts';

interface Pass {
  readonly manifest: readonly PageManifest[];
}

/**
 * Reads a listing until a pass is proven complete. One pass over one page is enough if it is consistent and
 * has all `existing` ids. A listing of several pages needs two stable passes that agree.
 * @returns `pass`: the proven pass, or else the last one. `last`: the pass that confirmed it, perhaps with
 *   more records. Both are undefined if there is no such listing
 */
export async function readUntilProven<P extends Pass>(
  existing: readonly string[],
  read: () => Promise<P | undefined>,
): Promise<{ pass: P | undefined; last: P | undefined; proven: boolean }> {
  let before: P | undefined;
  for (let count = 1; count <= attemptPolicy.passesMax; count++) {
    const now = await read();
    if (now === undefined) return { pass: before, last: before, proven: false };
    if (provesItself(now, existing)) return { pass: now, last: now, proven: true };
    if (before !== undefined && confirmsPass(before.manifest, now.manifest))
      return { pass: before, last: now, proven: true };
    before = now;
  }
  return { pass: before, last: before, proven: false };
}

function provesItself({ manifest }: Pass, existing: readonly string[]): boolean {
  if (manifest.length !== 1 || !judgePass(manifest).stable) return false;
  const listed = new Set(printedUuids(manifest.flatMap(({ ids }) => ids)));
  return existing.every((id) => listed.has(id));
}
