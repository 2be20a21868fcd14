import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { CodecKey } from './payload-codec.ts';
import { writePrivateFileOnce } from './private-file.ts';

const keyBytes = 32;

/**
 * The key of what the embedded Temporal is given, which the first process makes and the others of the folder read.
 * Its port takes anybody on the machine; without the key nobody reads events there, nor has any applied.
 * Undefined for data from before there were keys, which goes on as it is. To be called before the server starts.
 * @throws Error when the file holds no key
 */
export function embeddedCodecKey(dir: string): CodecKey | undefined {
  const file = join(dir, 'temporal-codec-key');
  const hasData = existsSync(join(dir, 'temporal.db'));
  if (!existsSync(file)) {
    if (hasData) return undefined;
    writePrivateFileOnce(file, `${randomBytes(keyBytes).toString('base64')}\n`);
  }
  const key = Buffer.from(readFileSync(file, 'utf8').trim(), 'base64');
  if (key.length !== keyBytes) {
    throw new Error(
      `${file} holds no key: put it back from a backup, or delete it and temporal.db beside it`,
    );
  }
  return { id: 'embedded', key };
}
