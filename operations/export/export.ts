import { Readable, type Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { type SQL, sql } from 'drizzle-orm';
import { PgDialect } from 'drizzle-orm/pg-core';
import type pg from 'pg';
import { to as copyTo } from 'pg-copy-streams';
import type { ExportFormat } from '../../contract/names.ts';
import type { Executor, Warehouse } from '../../db/connection/connect.ts';
import {
  listRelations,
  type Relation,
  readColumns,
  readSchemas,
  relationName,
} from '../../db/read/relations.ts';
import { parquetChunks } from './parquet.ts';
import { guardedColumns } from './spreadsheet.ts';

export interface ExportOptions {
  readonly warehouse: Warehouse;
  /** `analytics.bills` or `bills`. */
  readonly relation: string;
  readonly format: ExportFormat;
  /** Exports only the rows of this company. */
  readonly companyId?: string | undefined;
  /** CSV only: begins with the mark of UTF-8, and guards texts that a spreadsheet would run or change. */
  readonly spreadsheet?: boolean;
  /** Opens the target for the relation, by its name with schema. The target is left open at the end. */
  readonly open: (relation: string) => Writable;
}

/**
 * Streams a table or view as one transaction sees it, with times in UTC; returns the number of rows. Memory
 * holds what COPY has in flight, or one group of rows.
 * @throws UnknownRelation if there is no such relation, or a company is requested and its rows name none
 */
export async function exportRelation(options: ExportOptions): Promise<number> {
  const { warehouse, companyId, format, spreadsheet = false } = options;
  const relation = await findRelation(warehouse.db, options.relation);
  const source = rowsOf(relation, companyId, spreadsheet ? guardedColumns(relation.columns) : sql`*`);
  const client = await warehouse.pool.connect();
  let failed = true;
  try {
    await client.query(
      `begin transaction isolation level repeatable read read only; set local timezone to 'UTC';
      set local intervalstyle to postgres; set local bytea_output to hex`,
    );
    const write = format === 'csv' ? writeCsv : writeParquet;
    const to = options.open(qualifiedName(relation));
    // Without this mark, Excel reads a file in the default encoding of its machine.
    if (spreadsheet) to.write('\ufeff');
    const rows = await write(client, relation, source, to);
    await client.query('commit');
    failed = false;
    return rows;
  } finally {
    // A reader that stops early leaves the connection in the middle of an answer, so it is closed.
    client.release(failed);
  }
}

/** Writes the query of the rows without parameters, because COPY takes none. */
function rowsOf(relation: Relation, companyId: string | undefined, columns: SQL): string {
  const name = qualifiedName(relation);
  if (companyId !== undefined && !/^[0-9a-f-]{36}$/.test(companyId))
    throw new Error(`${companyId} is not a UUID`);
  const column = relation.name === 'companies' ? 'id' : 'company_id';
  if (companyId !== undefined && !relation.columns.some(({ name }) => name === column))
    throw new UnknownRelation(`the rows of ${name} do not name a company: export it without --company`);
  const where = companyId === undefined ? sql`` : sql.raw(` where ${column} = '${companyId}'`);
  return new PgDialect().sqlToQuery(sql`select ${columns} from ${relationName(relation)}${where}`).sql;
}

async function writeCsv(client: pg.PoolClient, _: Relation, source: string, to: Writable): Promise<number> {
  const copying = client.query(copyTo(`copy (${source}) to stdout (format csv, header)`));
  await pipeline(copying, to, { end: false });
  return copying.rowCount;
}

async function writeParquet(
  client: pg.PoolClient,
  { columns }: Relation,
  source: string,
  to: Writable,
): Promise<number> {
  const counted = { rows: 0 };
  await pipeline(Readable.from(parquetChunks(client, columns, source, counted)), to, { end: false });
  return counted.rows;
}

/** A name matches no table or view, several, or one without companies; the message says what there is. */
export class UnknownRelation extends Error {}

/**
 * Finds a table or view by its name, which needs its schema if several have it, unless analytics is one.
 * @throws UnknownRelation that lists the tables and views of that name
 */
async function findRelation(db: Executor, wanted: string): Promise<Relation> {
  const relations = await listRelations(db);
  const found = relations.filter(
    (relation) => relation.name === wanted || qualifiedName(relation) === wanted,
  );
  // The views for analysts go first. Other tables of the same name hold records, or belong to the pipeline.
  const ofAnalysts = found.filter(({ schema }) => schema === 'analytics');
  const [only, ...more] = ofAnalysts.length > 0 ? ofAnalysts : found;
  if (more.length > 0)
    throw new UnknownRelation(
      `several tables or views have the name ${wanted}: ${found.map(qualifiedName).join(', ')}`,
    );
  if (only !== undefined) return { ...only, columns: await readColumns(db, only) };
  throw new UnknownRelation(
    `there is no table or view ${wanted} in ${readSchemas.join(', ')}; docs/reference/dictionary.md describes all`,
  );
}

const qualifiedName = ({ schema, name }: Pick<Relation, 'schema' | 'name'>): string => `${schema}.${name}`;
