import { ByteWriter, ParquetWriter, type SchemaElement } from 'hyparquet-writer';
import pg from 'pg';
import type { RelationColumn } from '../../db/read/relations.ts';

/** Bounds of a group of rows, which is what an export holds in memory. */
const groupRowsMax = 100_000;
const groupCharactersMax = 6_000_000;
/** Number of rows of the first fetch, when their length is not known yet, and the maximum of any fetch. */
const [firstRows, fetchedRowsMax] = [20, 2_000];

/** Keeps values as the texts of Postgres, because each column reads its own values. */
const unread = { getTypeParser: () => (text: string) => text } as unknown as pg.CustomTypesConfig;

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
  const fetch = { rowMode: 'array', types: unread } as const;
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

/** How a column is stored, and how its values are read. */
interface ParquetColumn {
  readonly name: string;
  readonly schema: readonly SchemaElement[];
  /** The SQL expression of the column's values, of type text. */
  readonly sent: string;
  /** Turns that text into the value that the file's writer takes. */
  readonly read: (text: string) => unknown;
}

/** Digits of a decimal of 16 bytes, the widest that every reader knows. */
const decimalDigits = 38;
/** Decimal places of every decimal with room for them: amounts and usage have fewer. */
const usualPlaces = 12;

type Leaf = Omit<SchemaElement, 'name' | 'repetition_type'>;
type Made = Pick<ParquetColumn, 'read'> & { readonly leaf: Leaf; readonly sent: (name: string) => string };

const text: Leaf = { type: 'BYTE_ARRAY', converted_type: 'UTF8', logical_type: { type: 'STRING' } };
const asText: Made = { leaf: text, sent: (name) => `${name}::text`, read: (value) => value };

const micros = (isAdjustedToUTC: boolean): Leaf => ({
  type: 'INT64',
  // The older `converted_type` has no local times: readers would take them for UTC.
  ...(isAdjustedToUTC ? { converted_type: 'TIMESTAMP_MICROS' } : {}),
  logical_type: { type: 'TIMESTAMP', isAdjustedToUTC, unit: 'MICROS' },
});

const asMicros = (isAdjustedToUTC: boolean): Made => ({
  leaf: micros(isAdjustedToUTC),
  sent: (name) => `(extract(epoch from ${name}) * 1000000)::bigint::text`,
  read: BigInt,
});

const asIs = (type: 'INT32' | 'INT64' | 'FLOAT' | 'DOUBLE', read: (value: string) => unknown): Made => ({
  leaf: { type },
  sent: (name) => `${name}::text`,
  read,
});

/** Types with values that Parquet always holds unchanged. */
const plain: Readonly<Record<string, Made>> = {
  boolean: { leaf: { type: 'BOOLEAN' }, sent: (name) => `${name}::text`, read: (value) => value === 'true' },
  smallint: asIs('INT32', Number),
  integer: asIs('INT32', Number),
  bigint: asIs('INT64', BigInt),
  real: asIs('FLOAT', Number),
  'double precision': asIs('DOUBLE', Number),
};

/** Types with values that do not fit: infinite times and dates. */
const bounded: Readonly<Record<string, Made>> = {
  date: {
    leaf: { type: 'INT32', converted_type: 'DATE', logical_type: { type: 'DATE' } },
    sent: (name) => `(${name} - date '1970-01-01')::text`,
    read: Number,
  },
  'timestamp with time zone': asMicros(true),
  'timestamp without time zone': asMicros(false),
};

/** Stores numerics as unscaled integers of 38 digits. */
function asDecimal(scale: number): Made {
  const decimal = { precision: decimalDigits, scale };
  return {
    leaf: {
      type: 'FIXED_LEN_BYTE_ARRAY',
      type_length: 16,
      converted_type: 'DECIMAL',
      ...decimal,
      logical_type: { type: 'DECIMAL', ...decimal },
    },
    sent: (name) => `trunc(${name} * 1e${scale})::text`,
    read: BigInt,
  };
}

/**
 * Chooses a type for each column. It reads numerics, times and dates first, because most numerics have no
 * limits, and a file has its types before its values. Numerics become decimals with 12 places, or
 * as many as the longest fraction: the same in most files, because DuckDB reads several files with the places
 * of the first. Values that their type cannot hold (NaN, infinity, more than 38 digits), and types without an
 * equivalent, such as uuid and jsonb, become text. Arrays become lists of text, and ranges two columns.
 */
async function parquetColumns(
  client: pg.PoolClient,
  columns: readonly RelationColumn[],
  source: string,
): Promise<ParquetColumn[]> {
  const parts = columns.flatMap(partsOf);
  const looks = parts.flatMap(({ column, type }, place) => {
    if (type === 'numeric') return [`${digitsOf(column)} as c${place}`];
    if (type in bounded) return [`${isHeld(column, type)} as c${place}`];
    return [];
  });
  const seen: Record<string, unknown> =
    looks.length === 0
      ? {}
      : ((await client.query(`select ${looks.join(', ')} from (${source}) source`)).rows[0] ?? {});
  return parts.map((part, place) => parquetColumn(part, seen[`c${place}`]));
}

/** A column of a relation, or one end of a range. */
interface Part extends RelationColumn {
  /** The SQL expression of its values. */
  readonly column: string;
}

/** Types of ranges, with the type of their ends, because most readers of Parquet do not know ranges. */
const rangeTypes: Readonly<Record<string, string>> = {
  daterange: 'date',
  tstzrange: 'timestamp with time zone',
  tsrange: 'timestamp without time zone',
  numrange: 'numeric',
  int4range: 'integer',
  int8range: 'bigint',
};

/** Makes two columns of a range: the first value in the range, and the first value after it. */
function partsOf({ name, type }: RelationColumn): Part[] {
  const column = pg.escapeIdentifier(name);
  const endType = rangeTypes[type];
  if (endType === undefined) return [{ name, type, column }];
  return ['lower', 'upper'].map((end) => ({
    name: `${name}_${end}`,
    type: endType,
    column: `${end}(${column})`,
  }));
}

/** SQL of the decimal places of a column's numerics; NULL when they do not fit. */
function digitsOf(column: string): string {
  const whole = `coalesce(max(length(trunc(abs(${column}))::text)), 0)`;
  const places = `coalesce(max(min_scale(${column})), 0)`;
  return `case
    when bool_or(${column} in ('NaN', 'Infinity', '-Infinity')) then null
    when ${whole} + ${places} > ${decimalDigits} then null
    else greatest(${places}, least(${usualPlaces}, ${decimalDigits} - ${whole}))
  end`;
}

/** SQL that says whether all values fit: microseconds since 1970 end before Postgres's, since 2000. */
const isHeld = (column: string, type: string): string =>
  `coalesce(bool_and(isfinite(${column})${type === 'date' ? '' : ` and ${column} < '290000-01-01'`}), true)`;

function parquetColumn({ name, type, column }: Part, seen: unknown): ParquetColumn {
  if (type.endsWith('[]')) return listColumn(name);
  const { leaf, sent, read } = made(type, seen);
  return {
    name,
    schema: [{ name, repetition_type: 'OPTIONAL', ...leaf }],
    sent: sent(column),
    read,
  };
}

function made(type: string, seen: unknown): Made {
  if (type === 'numeric') return typeof seen === 'number' ? asDecimal(seen) : asText;
  if (type in bounded) return seen === true ? (bounded[type] ?? asText) : asText;
  return plain[type] ?? asText;
}

function listColumn(name: string): ParquetColumn {
  return {
    name,
    schema: [
      {
        name,
        repetition_type: 'OPTIONAL',
        num_children: 1,
        converted_type: 'LIST',
        logical_type: { type: 'LIST' },
      },
      { name: 'list', repetition_type: 'REPEATED', num_children: 1 },
      { name: 'element', repetition_type: 'OPTIONAL', ...text },
    ],
    sent: `to_json(${pg.escapeIdentifier(name)}::text[])::text`,
    read: JSON.parse,
  };
}
