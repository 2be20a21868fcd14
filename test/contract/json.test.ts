import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';

/** Parses 4 MB of small records with numeric ids. */
const script = `
  const { parseExact } = await import(${JSON.stringify(new URL('../../contract/json.ts', import.meta.url).href)});
  const text = '[' + '{"id":1.50,"a":1},'.repeat(250_000) + '{}]';
  console.log(JSON.stringify(parseExact(text, new Set(['id'])).slice(-2)));
`;

test('parses an answer of small records exactly in a small heap', async () => {
  const options = ['--max-old-space-size=80', '--input-type=module', '--eval', script];
  const { stdout } = await promisify(execFile)(process.execPath, options);
  expect(JSON.parse(stdout)).toEqual([{ id: '1.50', a: 1 }, {}]);
});
