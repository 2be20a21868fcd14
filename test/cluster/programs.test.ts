import { chmod, writeFile } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { expect, test } from 'vitest';
import { temporaryFolder } from '../support/folder.ts';
import { findGo } from './programs.ts';

test('Go is found in the first folder of the path that has it, and otherwise the error says what to do', async () => {
  const [empty, other] = [await temporaryFolder(), await temporaryFolder()];
  try {
    expect(() => findGo(empty.path)).toThrow(/^Go is missing: .*Install it \(https:/);
    const go = join(other.path, 'go');
    await writeFile(go, '');
    expect(() => findGo(other.path)).toThrow('Go is missing');
    await chmod(go, 0o755);
    expect(findGo(['.', empty.path, other.path].join(delimiter))).toBe(go);
  } finally {
    await Promise.all([empty.remove(), other.remove()]);
  }
});
