import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { writePrivateFileOnce } from '../process/private-file.ts';
import type { CodecKey } from './payload-codec.ts';

const keyBytes = 32;

/**
 * Reads the key that encrypts the payloads of the embedded Temporal, or creates it: call it before the server
 * starts. Temporal's port accepts every user of the machine, who without the key can neither read nor forge
 * events. Returns undefined for data that is older than the keys and stays unencrypted.
 * @throws Error if the file does not contain a key
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
      `${file} does not contain a key: restore it from a backup, or delete it together with temporal.db in the same folder`,
    );
  }
  return { id: 'embedded', key };
}
