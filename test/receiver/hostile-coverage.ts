import { readFile } from 'node:fs/promises';
import { join } from 'node:path';

/** Files whose test titles begin with the rows that they prove. */
const files = [
  'receiver/hostile-headers.test.ts',
  'receiver/hostile-bodies.test.ts',
  'receiver/hostile-http.test.ts',
  'receiver/flood.test.ts',
  'receiver/secrets.test.ts',
  'receiver/server.test.ts',
  'receiver/verify.test.ts',
  'pipeline/hostile-events.test.ts',
];

/** `test('7: what it proves'` */
const title = /(['"`])(\d{1,2}): (.*?)(?<!\\)\1/g;
/** `['7', 'what it proves', …]`, a row of a table whose title is `%s: …`. */
const tableRow = /\[\s*'(\d{1,2})',\s*(?:'([^']*)'|([^,\]]+))/g;

/** Finds the tests that prove each row of the table of hostile inputs. */
export async function readHostileCoverage(folder: string): Promise<Map<number, string[]>> {
  const proofs = new Map<number, string[]>();
  const add = (row: number, words: string, file: string) =>
    proofs.set(row, [...(proofs.get(row) ?? []), `${words} (${file})`]);
  for (const file of files) {
    const source = await readFile(join(folder, file), 'utf8');
    for (const [, , row, words = ''] of source.matchAll(title)) add(Number(row), words, file);
    if (!/(['"`])%s: /.test(source)) continue;
    for (const [, row, text, code = ''] of source.matchAll(tableRow)) add(Number(row), text ?? code, file);
  }
  return proofs;
}
