import { randomUUID } from 'node:crypto';
import { lstatSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Readable, Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { type Table, tableFromIPC } from 'apache-arrow';
import { sql } from 'drizzle-orm';
import fc from 'fast-check';
import { readParquet } from 'parquet-wasm/node';
import { from as copyFrom } from 'pg-copy-streams';
import { describe, expect, test } from 'vitest';
import { type ExportOptions, exportRelation } from '../../operations/export/export.ts';
import { BilledCompany } from '../support/bills.ts';
import { runCommand } from '../support/command.ts';
import { startCommand } from '../support/command-process.ts';
import { temporaryFolder } from '../support/folder.ts';
import { forFile } from '../support/for-file.ts';
import { until } from '../support/poll.ts';
import { createWarehouse } from '../support/warehouse.ts';

const seed = Number(process.env.SEED ?? 20_261_124);

const [warehouse, folder] = await Promise.all([
  forFile(createWarehouse('America/New_York')),
  forFile(temporaryFolder()),
]);
await warehouse.db.execute(sql`create table ops.many as
  select n, md5(n::text) as said from generate_series(1, 120000) n`);

/** Returns the exported bytes, and their largest piece. */
async function exported(input: Pick<ExportOptions, 'relation' | 'format' | 'companyId' | 'spreadsheet'>) {
  const pieces: Buffer[] = [];
  const sink = new Writable({
    write: (piece: Buffer, _, done) => {
      pieces.push(Buffer.from(piece));
      done();
    },
  });
  const rows = await exportRelation({ ...input, warehouse, open: () => sink });
  return { rows, bytes: Buffer.concat(pieces), pieces };
}

/** Reads the file with another implementation: Arrow's, in Rust. */
const read = (bytes: Uint8Array): Table => tableFromIPC(readParquet(bytes).intoIPCStream());

/** Reads a column's raw buffer: Arrow's accessors would round times to milliseconds. */
function raw(table: Table, name: string): unknown[] {
  const column = table.getChild(name);
  if (column === null) throw new Error(`there is no column ${name}`);
  return column.data.flatMap((part) =>
    Array.from({ length: part.length }, (_, at) => (part.getValid(at) ? part.values[at] : null)),
  );
}

/** Reads a CSV file with another program, Postgres's COPY, into columns of text, in the order of the file. */
async function readBack(file: Buffer): Promise<Record<string, string | null>[]> {
  const bytes = Buffer.from(new TextDecoder().decode(file));
  const [head = ''] = bytes.toString('utf8').split('\n', 1);
  const names = head.replaceAll(/[^,]+/g, '"$&"');
  const client = await warehouse.pool.connect();
  try {
    await client.query(`create temp table read_back
      (line int generated always as identity, ${names.replaceAll(/[^,]+/g, '$& text')})`);
    await pipeline(
      Readable.from([bytes]),
      client.query(copyFrom(`copy read_back (${names}) from stdin (format csv, header)`)),
    );
    const lines = await client.query(`select ${names} from read_back order by line`);
    return lines.rows as Record<string, string | null>[];
  } finally {
    await client.query('drop table if exists read_back');
    client.release();
  }
}

/** Exports texts for a spreadsheet, and reads them back. */
async function cellsOf(...texts: string[]): Promise<(string | null)[]> {
  await warehouse.db.execute(sql`drop table if exists ops.cells`);
  await warehouse.db.execute(sql`create table ops.cells (said text)`);
  for (const text of texts) await warehouse.db.execute(sql`insert into ops.cells values (${text})`);
  const { bytes } = await exported({ relation: 'ops.cells', format: 'csv', spreadsheet: true });
  return (await readBack(bytes)).map(({ said = null }) => said);
}

const types = (table: Table) => Object.fromEntries(table.schema.fields.map((f) => [f.name, String(f.type)]));

const microsOf = (timestamp: string): bigint => {
  const [, whole = '', fraction = ''] = /^(.{19})(?:\.(\d+))?/.exec(timestamp) ?? [];
  return BigInt(Date.parse(`${whole.replace(' ', 'T')}Z`)) * 1000n + BigInt(fraction.padEnd(6, '0'));
};

/** Creates a relation with columns of every type. */
async function createTyped(rows: readonly (readonly (string | null)[])[]): Promise<string> {
  const name = `typed_${randomUUID().slice(0, 8)}`;
  const columns = `n numeric, fixed numeric(20, 6), at timestamptz, local timestamp, day date, small int2, whole int4,
    big int8, yes boolean, single float4, double float8, said text, id uuid, raw jsonb, list text[], ids uuid[], days daterange`;
  await warehouse.db.execute(sql.raw(`create table ops.${name} (place serial, ${columns})`));
  for (const row of rows) {
    const values = row.map((value) => (value === null ? 'null' : `'${value.replaceAll("'", "''")}'`));
    await warehouse.db.execute(sql.raw(`insert into ops.${name} values (default, ${values.join(', ')})`));
  }
  return `ops.${name}`;
}

const full = [
  '-12345678901234567890.000000000000000001',
  '99999999999999.999999',
  '2026-03-08 06:59:59.999999+00',
  '2026-03-08 02:30:00.000001',
  '1969-12-31',
  '-32768',
  '-2147483648',
  '-9223372036854775808',
  't',
  '0.1',
  '0.30000000000000004',
  'a "quoted", line\nand \u{1F4A1}',
  '00000000-0000-4000-8000-00000000abcd',
  '{"a":1.10,"b":12345678901234567890.5}',
  '{x,NULL,"y,z",""}',
  '{}',
  '[2026-01-01,2026-02-01)',
];
const nothing = full.map(() => null);

describe('parquet', () => {
  test('has every value exactly, in its type', async () => {
    const relation = await createTyped([full, nothing]);
    const { rows, bytes } = await exported({ relation, format: 'parquet' });
    const table = read(bytes);
    expect([rows, table.numRows]).toEqual([2, 2]);
    const lines = table.schema.fields.map(({ name, type }) => {
      const value = /^(Timestamp|Date)/.test(String(type))
        ? raw(table, name)[0]
        : table.getChild(name)?.get(0);
      const shown = String(type).startsWith('List') ? JSON.stringify([...value]) : String(value);
      return `${name} ${type}: ${shown}`;
    });
    await expect(`${lines.join('\n')}\n`).toMatchFileSnapshot('golden/parquet.txt');
    expect(raw(table, 'at')[0]).toBe(microsOf('2026-03-08 06:59:59.999999'));
    expect(raw(table, 'local')[0]).toBe(microsOf('2026-03-08 02:30:00.000001'));
    const others = table.schema.fields.filter(({ name }) => name !== 'place');
    expect(others.every(({ name }) => (table.getChild(name)?.get(1) ?? null) === null)).toBe(true);
  });

  test('writes a column as text if its type cannot hold a value', async () => {
    const values = {
      n: ['NaN', '-Infinity', `1${'0'.repeat(38)}`],
      at: ['infinity', '294200-01-01 00:00:00+00'],
    };
    for (const [column, texts] of Object.entries(values))
      for (const value of texts) {
        const place = column === 'n' ? 0 : 2;
        const relation = await createTyped([full, full.map((text, at) => (at === place ? value : text))]);
        const table = read((await exported({ relation, format: 'parquet' })).bytes);
        expect([types(table)[column], table.getChild(column)?.get(1)]).toEqual(['Utf8', value]);
      }
  });

  test.each([
    ['10', 12],
    ['0.1234567890123', 13],
    [`${'9'.repeat(30)}.5`, 8],
  ])('writes a decimal %s with the places of other files if they fit', async (value, places) => {
    const relation = await createTyped([full.map((text, at) => (at === 0 ? value : text))]);
    const table = read((await exported({ relation, format: 'parquet' })).bytes);
    expect(types(table).n).toBe(`Decimal[38e+${places}]`);
    const [whole = '', fraction = ''] = value.split('.');
    expect(String(table.getChild('n')?.get(0))).toBe(String(BigInt(whole + fraction.padEnd(places, '0'))));
  });

  test(`any numerics and times are read back exactly (seed ${seed})`, { timeout: 60_000 }, async () => {
    const numeric = fc
      .tuple(fc.bigInt({ min: -(10n ** 20n), max: 10n ** 20n }), fc.integer({ min: 0, max: 12 }))
      .map(([digits, places]) => {
        const text = String(digits < 0n ? -digits : digits).padStart(places + 1, '0');
        const dot = places === 0 ? text : `${text.slice(0, -places)}.${text.slice(-places)}`;
        return `${digits < 0n ? '-' : ''}${dot}`;
      });
    // In this range intervals are exact, although Postgres multiplies them as floats.
    const micros = fc.bigInt({ min: -(2n ** 53n), max: 2n ** 53n });
    const row = fc.tuple(fc.option(numeric), fc.option(micros));
    await fc.assert(
      fc.asyncProperty(fc.array(row, { minLength: 1, maxLength: 50 }), async (drawn) => {
        const name = `ops.drawn_${randomUUID().slice(0, 8)}`;
        const values = JSON.stringify(
          drawn.map(([n, at], place) => ({ place, n, at: at?.toString() ?? null })),
        );
        await warehouse.db.execute(sql`create table ${sql.raw(name)} as
          select place, n, timestamptz '1970-01-01 00:00:00+00' + at * interval '1 microsecond' as at
          from jsonb_to_recordset(${values}::jsonb) as r (place int, n numeric, at bigint) order by place`);
        const table = read((await exported({ relation: name, format: 'parquet' })).bytes);
        expect(raw(table, 'at')).toEqual(drawn.map(([, at]) => at));
        const scale = Number(/e\+(\d+)/.exec(types(table).n ?? '')?.[1] ?? 0);
        const scaled = (text: string) => {
          const [whole = '', fraction = ''] = text.split('.');
          return BigInt(whole + fraction.replace(/0+$/, '').padEnd(scale, '0'));
        };
        const got = drawn.map((_, at) => table.getChild('n')?.get(at));
        expect(got.map((value) => (value === null ? null : BigInt(value.toString())))).toEqual(
          drawn.map(([n]) => (n === null ? null : scaled(n))),
        );
        await warehouse.db.execute(sql`drop table ${sql.raw(name)}`);
      }),
      { seed, numRuns: 25 },
    );
  });

  test('writes a group of rows once it is full, and an empty relation as a file with its columns', async () => {
    const { rows, pieces, bytes } = await exported({ relation: 'many', format: 'parquet' });
    expect(rows).toBe(120_000);
    const largest = Math.max(...pieces.map((piece) => piece.length));
    expect(largest).toBeLessThan(bytes.length * 0.9);
    const table = read(bytes);
    const seen = raw(table, 'n') as number[];
    expect([seen.length, new Set(seen).size]).toEqual([120_000, 120_000]);
    const empty = read((await exported({ relation: 'ops.emission_factors', format: 'parquet' })).bytes);
    expect([empty.numRows, types(empty).kg_co2e_per_unit]).toEqual([0, 'Decimal[38e+12]']);
  });

  test('keeps few rows in memory if texts are long', async () => {
    await warehouse.db.execute(sql`create table ops.long as
      select n, repeat('x', 20000) as said from generate_series(1, 800) n`);
    const { rows, pieces, bytes } = await exported({ relation: 'ops.long', format: 'parquet' });
    // The pieces are groups of 6 million characters, and the footer.
    expect([rows, read(bytes).numRows, pieces.length]).toEqual([800, 800, 4]);
  });
});

describe('csv', () => {
  test('is what COPY writes, in UTC, and NULL differs from the empty text', async () => {
    const relation = await createTyped([full, nothing.map((_, at) => (at === 11 ? '' : null))]);
    const { rows, bytes } = await exported({ relation, format: 'csv' });
    expect(rows).toBe(2);
    await expect(bytes.toString('utf8')).toMatchFileSnapshot('golden/rows.csv');
  });

  test('begins no text with a formula if it is for a spreadsheet, and leaves numbers, dates and ids unchanged', async () => {
    const begun = [...'=+-@＝＋－＠−', ' =', '\t', '\r', '\n', '\u200b+', "\u00a0@SUM(1)'"];
    const text = fc
      .tuple(fc.constantFrom('', ...begun), fc.string({ unit: 'grapheme' }))
      .map(([first, rest]) => `${first}${rest}`.replaceAll(/[\0\d]/g, ''));
    const parts = fc.array(fc.constantFrom(...';,|\t\r\n\u200b "=-＝a'), { maxLength: 12 });
    const texts = [
      `=cmd|'/C calc'!A0`,
      '',
      'a-b',
      ...begun,
      ...fc.sample(text, { seed, numRuns: 200 }),
      ...fc.sample(parts, { seed, numRuns: 200 }).map((all) => all.join('')),
    ];
    const rows = texts.map((said) => full.map((value, at) => (at === 11 ? said : (value ?? null))));
    const relation = await createTyped([...rows, nothing]);
    const plain = await readBack((await exported({ relation, format: 'csv' })).bytes);
    const guarded = await readBack((await exported({ relation, format: 'csv', spreadsheet: true })).bytes);
    // Postgres may keep a short row before longer rows that were written earlier.
    expect(plain.map(({ said }) => said).sort()).toEqual([...texts, null].sort());
    const risky = /^[\s\p{Cc}\p{Cf}"]*[=+\-@＝＋－＠−]/u;
    // A program with another separator reads the parts as cells.
    const safe = (was: string) =>
      (/^[\t\r\n]/.test(was) ? "'" : '') +
      was.replaceAll(/[^;,|\t\r\n]+/g, (cell) => (risky.test(cell) ? `'${cell}` : cell));
    for (const [at, { said, ...others }] of guarded.entries()) {
      const { said: was = null, ...same } = plain[at] ?? {};
      expect(others).toEqual(same);
      expect(said).toBe(was === null ? null : safe(was));
    }
    expect(guarded[0]).toMatchObject({ n: full[0], small: '-32768', said: `'=cmd|'/C calc'!A0` });
  });

  test('keeps what a spreadsheet would change, shows what it cannot hold, and leaves all other texts', async () => {
    const texts = [
      ...['00012345', '1E5', ' 0012', '1234567890123456', '12.50', '1,000', '1/2', '1-2', '2026-01-31'],
      ...['10:30', '2026-01-31 00:00:00Z', '$5.00', '(5)', '5%', '.5', 'MAR1', 'Sept 2', '1-Mar', 'true'],
      ...['12345', '0', '123456789012345', 'E-77', 'A1', 'Mark 5', 'March', '12 Main Street', 'a 1', ''],
      ...['a\u001bb\u0007\u0001\u001f\ufffe\uffff', 'tab\tline\nend\r', '\u0001=1'],
    ];
    const cells = await cellsOf(...texts);
    const lines = texts.map((text, at) => `${JSON.stringify(text)} is ${JSON.stringify(cells[at])}`);
    await expect(`${lines.join('\n')}\n`).toMatchFileSnapshot('golden/cells.txt');
    await warehouse.db.execute(sql.raw(`create view ops.odd as select 1 as "a\u001b", 2 as "0012"`));
    const { bytes } = await exported({ relation: 'ops.odd', format: 'csv', spreadsheet: true });
    expect(bytes.toString('utf8')).toBe("\ufeffa␛,'0012\n1,2\n");
  });

  test('shortens texts that are too long for a cell of a spreadsheet, and says so in the cell', async () => {
    const fits = ['x'.repeat(32_767), '💡'.repeat(16_383)];
    const long = ['y'.repeat(32_768), '💡'.repeat(16_384), `;=${'1'.repeat(32_765)}`];
    expect(await cellsOf(...fits, ...long)).toEqual([
      ...fits,
      `${'y'.repeat(32_700)} … [shortened from 32768 characters]`,
      `${'💡'.repeat(16_300)} … [shortened from 16384 characters]`,
      `;'=${'1'.repeat(32_697)} … [shortened from 32767 characters]`,
    ]);
  });

  test('is marked as UTF-8 once for a spreadsheet, and starts no formula after a separator inside a text or a name', async () => {
    await warehouse.db.execute(
      sql.raw(`create table ops.split as select * from (values
      ($$x;=cmd|' /C calc'!A0;y$$), ('Zoë'), (e'Acme\\t=1+1'), ('a|b; "-1'), ('-1')) v ("said;+1")`),
    );
    const { bytes } = await exported({ relation: 'ops.split', format: 'csv', spreadsheet: true });
    const [head, ...lines] = bytes.toString('utf8').trimEnd().split('\n');
    expect(head).toBe(`\ufeffsaid;'+1`);
    expect(lines.sort()).toEqual([`"a|b;' ""-1"`, `'-1`, `Acme\t'=1+1`, 'Zoë', `x;'=cmd|' /C calc'!A0;y`]);
    const plain = await exported({ relation: 'ops.split', format: 'csv' });
    expect(plain.bytes.toString('utf8')).toMatch(/^said;\+1\n/);
  });

  test('has only the rows of one company, from views and from the table of companies', async () => {
    const [mine, another] = [new BilledCompany(warehouse), new BilledCompany(warehouse)];
    for (const company of [mine, another]) {
      await company.add({});
      await company.bill([{ billed: 1, cost: '12.34', usage: [] }]);
    }
    for (const relation of ['bills', 'utility.companies']) {
      const { bytes, rows } = await exported({ relation, format: 'csv', companyId: mine.id });
      expect([rows, bytes.includes(mine.id), bytes.includes(another.id)]).toEqual([1, true, false]);
    }
    const intervals = exported({ relation: 'utility.intervals', format: 'csv', companyId: mine.id });
    await expect(intervals).rejects.toThrow('the rows of utility.intervals do not name a company');
  });

  test('ends when its reader stops, and the connection is not used again', async () => {
    const sink = new Writable({ highWaterMark: 1, write: (_, __, done) => done(new Error('it had enough')) });
    const stopped = exportRelation({ warehouse, relation: 'many', format: 'csv', open: () => sink });
    await expect(stopped).rejects.toThrow('it had enough');
    expect((await exported({ relation: 'many', format: 'csv' })).rows).toBe(120_000);
  });
});

describe('metersync export', () => {
  const run = (...args: string[]) =>
    runCommand(['export', ...args], {
      cwd: folder.path,
      env: { DATABASE_URL: warehouse.url, METERSYNC_DIR: folder.path },
    });

  test('writes the same bytes and intervals whatever the database sets for them', async () => {
    await warehouse.db.execute(
      sql`create table ops.styled as select '\\x00ff'::bytea as raw, interval '1 day 2 hours' as took`,
    );
    const database = sql.identifier(new URL(warehouse.url).pathname.slice(1));
    for (const set of ['bytea_output = escape', 'intervalstyle = iso_8601'])
      await warehouse.db.execute(sql`alter database ${database} set ${sql.raw(set)}`);
    const { stdout } = await run('ops.styled');
    await warehouse.db.execute(sql`alter database ${database} reset all`);
    expect(stdout).toBe('raw,took\n\\x00ff,1 day 02:00:00');
  });

  test('writes a complete file in the format of its extension', async () => {
    for (const name of ['bills.PARQUET', 'bills.parquet', 'bills.csv', 'bills']) {
      const out = join(folder.path, name);
      expect(await run('bills', '--out', out)).toMatchObject({
        status: 0,
        stdout: '',
        stderr: expect.stringMatching(/^2 rows of analytics\.bills written to /m),
      });
      const isParquet = /parquet/i.test(name);
      expect(readFileSync(out).subarray(0, 4).toString()).toBe(isParquet ? 'PAR1' : 'bill');
      if (isParquet) expect(read(readFileSync(out)).numRows).toBe(2);
    }
  });

  test('prefers the views of analysts, and says which names there are', async () => {
    const whole = await run('analytics.bills');
    expect(whole).toMatchObject({ status: 0, stderr: '', stdout: expect.stringMatching(/^bill_id,/) });
    expect(await run('analytics.bills', '--out', '-')).toEqual(whole);
    expect(await run('freshness')).toMatchObject({ status: 0, stderr: 'export: analytics.freshness' });
    for (const [name, words] of [
      ['connections', 'several tables or views have the name connections: '],
      ['analytics.bill', 'there is no table or view analytics.bill in analytics, '],
    ] as const)
      expect(await run(name)).toMatchObject({
        status: 2,
        stdout: '',
        stderr: expect.stringContaining(words),
      });
  });

  test('follows no planted link, writes a private file, and refuses a missing folder at once', async () => {
    const dir = join(folder.path, 'planted');
    mkdirSync(dir);
    const [out, report] = [join(dir, 'bills.csv'), join(dir, 'report.html')];
    const victims = [out, report].flatMap((name) =>
      ['', '.unfinished'].map((more) => {
        const victim = `${name}${more}.victim`;
        writeFileSync(victim, 'mine');
        symlinkSync(victim, `${name}${more}`);
        return victim;
      }),
    );
    expect((await run('bills', '--out', out)).status).toBe(0);
    const reported = await runCommand(['report', '--html', report], {
      env: { DATABASE_URL: warehouse.url, METERSYNC_DIR: folder.path },
    });
    expect(reported.status, reported.stderr).toBe(0);
    // The command refuses a folder before it reads anything.
    expect(
      await runCommand(['report', '--html', dir], {
        env: { DATABASE_URL: warehouse.url, METERSYNC_DIR: folder.path },
      }),
    ).toEqual({ status: 1, stdout: '', stderr: `metersync: ${dir} is not a file: name a file` });
    expect(victims.map((victim) => readFileSync(victim, 'utf8'))).toEqual(victims.map(() => 'mine'));
    for (const file of [out, report, join(folder.path, 'metersync.log')]) {
      const { mode } = lstatSync(file);
      expect([file, (mode & 0o777).toString(8)]).toEqual([file, '600']);
    }
  });

  test('leaves no unfinished file when it is interrupted', async () => {
    await warehouse.db.execute(
      sql`create view ops.slow as select n, pg_sleep(1)::text as waited from generate_series(1, 600) as n`,
    );
    const dir = join(folder.path, 'interrupted');
    mkdirSync(dir);
    for (const [signal, status] of [
      ['SIGINT', 130],
      ['SIGTERM', 143],
    ] as const) {
      const exporting = startCommand(['export', 'slow', '--out', join(dir, 'slow.csv')], {
        cwd: folder.path,
        env: { DATABASE_URL: warehouse.url, METERSYNC_DIR: folder.path },
      });
      await until('it writes', () => readdirSync(dir).length > 0);
      expect(await exporting.end(signal)).toEqual({ status, signal: null });
      expect(readdirSync(dir)).toEqual([]);
    }
  });
});
