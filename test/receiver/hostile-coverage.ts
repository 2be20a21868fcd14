import { readFile } from 'node:fs/promises';
import { join } from 'node:path';

/** Files whose test titles begin with the rows that they prove. */
const files = [
  'receiver/hostile-headers.test.ts',
  'receiver/hostile-bodies.test.ts',
  'receiver/hostile-http.test.ts',
  'receiver/flood.servers.test.ts',
  'receiver/secrets.test.ts',
  'receiver/server.test.ts',
  'receiver/verify.test.ts',
  'pipeline/hostile-events.servers.test.ts',
];

/** `test('7: what it proves'` */
const title = /['"`](?<row>\d{1,2}): /g;
/** `['7', 'what it proves', …]`, a row of a table whose title is `%s: …`. */
const tableRow = /\[\s*'(?<row>\d{1,2})',/g;

/** Finds the files of the tests that prove each row of the table of hostile inputs. */
export async function readHostileCoverage(folder: string): Promise<Map<number, Set<string>>> {
  const proofs = new Map<number, Set<string>>();
  for (const file of files) {
    const source = await readFile(join(folder, file), 'utf8');
    const rows = [
      ...source.matchAll(title),
      ...(/(['"`])%s: /.test(source) ? source.matchAll(tableRow) : []),
    ].map(({ groups }) => Number(groups?.row));
    for (const row of rows) proofs.set(row, (proofs.get(row) ?? new Set()).add(file));
  }
  return proofs;
}
