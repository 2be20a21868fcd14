import { extname } from 'node:path';
import { type ExportFormat, exportFormats } from '../../contract/names.ts';
import { counted } from '../../contract/words.ts';
import type { Warehouse } from '../../db/connection/connect.ts';
import { exportRelation } from '../../operations/export/export.ts';
import { UnknownRelation } from '../../operations/export/relation.ts';
import { sheetRowsMax } from '../../operations/export/spreadsheet.ts';
import { type CompanyOptions, heldCompanyOf } from '../company.ts';
import { UsageError } from '../errors.ts';
import { requireFolder, writeOutputFile } from '../output-file.ts';
import { printingStream, say } from '../print.ts';
import { createProgress } from '../terminal.ts';
import { withWarehouse } from '../warehouse.ts';

export interface ExportCommandOptions extends CompanyOptions {
  readonly out?: string;
  readonly spreadsheet?: boolean;
}

/** `metersync export`: writes a table or view to a file or standard output. */
export async function exportCommand(relation: string, options: ExportCommandOptions): Promise<void> {
  const { spreadsheet = false } = options;
  const out = options.out === '-' ? undefined : options.out;
  const format = formatOf(out);
  if (spreadsheet && format !== 'csv')
    throw new UsageError(`--spreadsheet is only for CSV: texts in ${format} are never read as formulas`);
  if (out !== undefined) requireFolder(out);
  await withWarehouse({ temporal: false }, async ({ db, warehouse }) => {
    const companyId = await heldCompanyOf(db, options);
    const input = { warehouse, relation, format, companyId, spreadsheet };
    try {
      if (out === undefined) await toStandardOutput(input);
      else await toFile(input, out);
    } catch (error) {
      if (error instanceof UnknownRelation) throw new UsageError(error.message);
      throw error;
    }
  });
}

/**
 * Returns the format that a file's extension names; CSV without one, or for standard output.
 * @throws UsageError if the extension stands for a format that is not supported
 */
function formatOf(out: string | undefined): ExportFormat {
  const ending = out === undefined ? '' : extname(out).slice(1).toLowerCase();
  if (ending === '') return 'csv';
  const format = exportFormats.find((one) => one === ending);
  if (format !== undefined) return format;
  throw new UsageError(
    `the extension of ${out} is not a format that this command writes: name a file that ends in ${exportFormats.map((one) => `.${one}`).join(' or ')}`,
  );
}

interface Input {
  readonly warehouse: Warehouse;
  readonly relation: string;
  readonly format: ExportFormat;
  readonly companyId: string | undefined;
  readonly spreadsheet: boolean;
}

async function toStandardOutput(input: Input): Promise<void> {
  try {
    // Lines are escaped for a terminal; a file or a program gets every byte.
    const rows = await exportRelation({
      ...input,
      open: (relation) => {
        if (relation !== input.relation) say(`export: ${relation}`);
        return process.stdout.isTTY ? printingStream() : process.stdout;
      },
    });
    const warning = tooLong(input, rows);
    if (warning.length > 0) say(...warning);
  } catch (error) {
    // The reader has closed the pipe, as in `metersync export bills | head`.
    if ((error as NodeJS.ErrnoException).code !== 'EPIPE') throw error;
  }
}

async function toFile(input: Input, path: string): Promise<void> {
  const progress = await createProgress();
  let name = input.relation;
  try {
    const rows = await writeOutputFile(path, async (file) => {
      const written = setInterval(
        () => progress.show([`export: ${megabytes(file.bytesWritten)} MB written`]),
        progressEveryMs,
      );
      const open = (relation: string) => {
        name = relation;
        return file;
      };
      try {
        return await exportRelation({ ...input, open });
      } finally {
        clearInterval(written);
      }
    });
    progress.show([`${counted(rows, 'row')} of ${name} written to ${path}`, ...tooLong(input, rows)]);
  } finally {
    progress.done();
  }
}

/** Says that a sheet does not show all rows. */
function tooLong({ spreadsheet }: Input, rows: number): string[] {
  const max = sheetRowsMax - 1;
  if (!spreadsheet || rows <= max) return [];
  return [`A sheet only shows the first ${max.toLocaleString('en')} rows: export one company, or Parquet.`];
}

const progressEveryMs = 1_000;
const megabytes = (bytes: number): string => Math.round(bytes / 1e6).toLocaleString('en');
