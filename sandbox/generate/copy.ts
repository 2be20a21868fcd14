import { pipeline } from 'node:stream/promises';
import type { ClientBase } from 'pg';
import { from } from 'pg-copy-streams';

type CopyValue = string | number | null;

const special = /[\\\n\r\t]/g;

const escapes: Readonly<Record<string, string>> = { '\\': '\\\\', '\n': '\\n', '\r': '\\r', '\t': '\\t' };

/** One row in the text format of COPY. */
export function copyLine(values: readonly CopyValue[]): string {
  let line = '';
  for (const [position, value] of values.entries()) {
    if (position > 0) line += '\t';
    if (value === null) line += '\\N';
    else if (typeof value === 'number') line += value;
    else line += special.test(value) ? value.replace(special, (found) => escapes[found] ?? found) : value;
    special.lastIndex = 0;
  }
  return `${line}\n`;
}

/** Streams lines of copyLine into a table that the transaction emptied; frozen, so no vacuum marks them. */
export async function copyInto(
  client: ClientBase,
  table: string,
  columns: readonly string[],
  lines: Iterable<string>,
): Promise<void> {
  const target = client.query(from(`copy sandbox.${table} (${columns.join(', ')}) from stdin (freeze)`));
  await pipeline(chunks(lines), target);
}

/** Groups lines into COPY messages of a quarter megabyte: one for each line would cost more than the rows. */
function* chunks(lines: Iterable<string>, bytes = 262_144): Generator<Buffer> {
  let held: string[] = [];
  let size = 0;
  for (const line of lines) {
    held.push(line);
    size += line.length;
    if (size < bytes) continue;
    yield Buffer.from(held.join(''));
    held = [];
    size = 0;
  }
  if (size > 0) yield Buffer.from(held.join(''));
}
