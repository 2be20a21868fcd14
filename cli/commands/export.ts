import { createWriteStream, type WriteStream } from 'node:fs';
import { rename, rm } from 'node:fs/promises';
import { finished } from 'node:stream/promises';
import { exportRelation } from '../../app/export/export.ts';
import { UnknownRelation } from '../../app/export/relation.ts';
import type { Warehouse } from '../../app/warehouse.ts';
import type { ExportFormat } from '../../contract/names.ts';
import { type CompanyOptions, companyOf } from '../company.ts';
import { UsageError } from '../context.ts';
import { createProgress } from '../terminal.ts';
import { withWarehouse } from '../warehouse.ts';

export interface ExportCommandOptions extends CompanyOptions {
  readonly format: ExportFormat;
  readonly out?: string;
}

/** `metersync export`: a table or view as a file, or on standard output. */
export async function exportCommand(relation: string, options: ExportCommandOptions): Promise<void> {
  const { format, out } = options;
  if (out === undefined && format === 'parquet' && process.stdout.isTTY)
    throw new UsageError('Parquet is not for a terminal: name a file with --out, or send it on with | or >');
  await withWarehouse({ temporal: false }, async ({ db, warehouse }) => {
    const companyId = await companyOf(db, options);
    const input = { warehouse, relation, format, companyId };
    try {
      if (out === undefined) await toStandardOutput(input);
      else await toFile(input, out);
    } catch (error) {
      if (error instanceof UnknownRelation) throw new UsageError(error.message);
      throw error;
    }
  });
}

interface Input {
  readonly warehouse: Warehouse;
  readonly relation: string;
  readonly format: ExportFormat;
  readonly companyId: string | undefined;
}

async function toStandardOutput(input: Input): Promise<void> {
  try {
    await exportRelation({ ...input, open: () => process.stdout });
  } catch (error) {
    // Whoever reads had enough: `metersync export bills | head`.
    if ((error as NodeJS.ErrnoException).code !== 'EPIPE') throw error;
  }
}

/** Under another name until it is whole: a file that is there is a file that was finished. */
async function toFile(input: Input, path: string): Promise<void> {
  const unfinished = `${path}.unfinished`;
  let file: WriteStream | undefined;
  const progress = createProgress();
  const written = setInterval(
    () => progress.show([`export: ${megabytes(file?.bytesWritten ?? 0)} MB written`]),
    progressEveryMs,
  );
  try {
    const rows = await exportRelation({
      ...input,
      open: () => {
        file = createWriteStream(unfinished);
        return file;
      },
    });
    file?.end();
    if (file !== undefined) await finished(file);
    await rename(unfinished, path);
    progress.show([`${rows.toLocaleString('en')} rows written to ${path}`]);
  } catch (error) {
    file?.destroy();
    if (file !== undefined) await rm(unfinished, { force: true });
    throw error;
  } finally {
    clearInterval(written);
    progress.done();
  }
}

const progressEveryMs = 1_000;
const megabytes = (bytes: number): string => Math.round(bytes / 1e6).toLocaleString('en');
