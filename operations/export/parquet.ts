import { ByteWriter, ParquetWriter } from 'hyparquet-writer';
import type pg from 'pg';
import type { RelationColumn } from '../../db/read/relations.ts';
import { type ParquetColumn, parquetColumns } from './parquet-columns.ts';

/** Bounds of a group of rows, which is what an export holds in memory. */
const groupRowsMax = 100_000;
const groupCharactersMax = 6_000_000;
/** Number of rows of the first fetch, when their length is not known yet, and the maximum of any fetch. */
const [firstRows, fetchedRowsMax] = [20, 2_000];

/** Keeps values as the texts of Postgres, because each column reads its own values. */
const asText = { getTypeParser: () => (text: string) => text } as unknown as pg.CustomTypesConfig;

/** Writes the rows of `source` as a Parquet file, by groups, in the client's transaction, and counts them. */
export async function* parquetChunks(
  client: pg.PoolClient,
  from: readonly RelationColumn[],
  source: string,
  counted: { rows: number },
): AsyncGenerator<Uint8Array> {
  const columns = await parquetColumns(client, from, source);
  const bytes = new ByteWriter();
  const schema = [
    { name: 'rows', num_children: columns.length },
    ...columns.flatMap(({ schema: own }) => own),
  ];
  const file = new ParquetWriter({ writer: bytes, schema, createdBy: 'metersync' });
  for await (const group of groups(client, columns, source)) {
    const rowGroupSize = group[0]?.length ?? 0;
    counted.rows += rowGroupSize;
    file.write({
      columnData: columns.map(({ name }, place) => ({ name, data: group[place] as unknown[] })),
      rowGroupSize,
    });
    yield taken(bytes);
  }
  file.finish();
  yield counted.rows === 0 ? withStructs(taken(bytes)) : taken(bytes);
}

/** "No rows, and an empty list of groups" in a footer; the last byte is the type of the list's elements. */
const noGroups = Buffer.from([0x16, 0x00, 0x19, 0x00]);
const structs = 0x0c;

/** Sets the element type of the empty list of groups: the writer omits it, and strict readers refuse that. */
function withStructs(emptyFile: Uint8Array): Uint8Array {
  const place = Buffer.from(emptyFile.buffer).lastIndexOf(noGroups);
  if (place === -1) throw new Error('the footer of an empty Parquet file is not as expected');
  emptyFile[place + noGroups.length - 1] = structs;
  return emptyFile;
}

/** Takes the bytes written so far from the writer, which goes on with an empty buffer. */
function taken(bytes: ByteWriter): Uint8Array {
  const copy = bytes.getBytes().slice();
  bytes.index = 0;
  return copy;
}

/** Yields groups of rows as columns. A fetch takes a group's rows, if they are as long as those before. */
async function* groups(
  client: pg.PoolClient,
  columns: readonly ParquetColumn[],
  source: string,
): AsyncGenerator<unknown[][]> {
  const sent = columns.map((column) => column.sent).join(', ');
  await client.query('set local cursor_tuple_fraction = 1');
  await client.query(`declare exported no scroll cursor for select ${sent} from (${source}) source`);
  const fetch = { rowMode: 'array', types: asText } as const;
  const empty = (): unknown[][] => columns.map(() => []);
  let [group, characters, wanted] = [empty(), 0, firstRows];
  for (;;) {
    const text = `fetch ${wanted} from exported`;
    const { rows } = await client.query<(string | null)[]>({ ...fetch, text });
    const before = characters;
    for (const [place, { read }] of columns.entries()) {
      const values = group[place] as unknown[];
      for (const row of rows) {
        const text = row[place] ?? null;
        characters += text?.length ?? 0;
        values.push(text === null ? null : read(text));
      }
    }
    const rowLength = (characters - before) / rows.length;
    const full = (group[0]?.length ?? 0) >= groupRowsMax || characters >= groupCharactersMax;
    if ((full || rows.length === 0) && (group[0]?.length ?? 0) > 0) {
      yield group;
      [group, characters] = [empty(), 0];
    }
    if (rows.length === 0) return;
    wanted = Math.min(fetchedRowsMax, Math.ceil((groupCharactersMax - characters) / rowLength));
  }
}
