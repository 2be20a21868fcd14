import type { Database } from '../../db/connection/connect.ts';
import { type Report, readReport } from '../../db/read/report.ts';
import { reportText } from '../../operations/report/summary.ts';
import { type CompanyOptions, heldCompanyOf } from '../company.ts';
import { requireFolder, writeOutputFile } from '../output-file.ts';
import { print, printJson, say } from '../print.ts';
import { createProgress } from '../terminal.ts';
import { withWarehouse } from '../warehouse.ts';

export interface ReportOptions extends CompanyOptions {
  readonly html?: string;
  readonly json?: boolean;
}

/** `metersync report`: reports cost, usage, coverage, corrections and more, of a company or of all. */
export async function report(options: ReportOptions): Promise<void> {
  const { html, json } = options;
  if (html !== undefined) requireFolder(html);
  await withWarehouse({ temporal: false }, async ({ db }) => {
    if (html === undefined) {
      const read = await readWithProgress(db, options);
      if (json) printJson(read);
      else print(...reportText(read));
      return;
    }
    // The file is opened first: a minute of reading is useless if the file cannot be written.
    await writeOutputFile(html, async (file) => {
      const read = await readWithProgress(db, options);
      if (json) printJson(read);
      // Loaded on demand: a report in the terminal has no charts.
      const { reportPage } = await import('../../operations/report/page.ts');
      file.write(await reportPage(read));
    });
    say(`report written to ${html}`);
  });
}

async function readWithProgress(db: Database, options: CompanyOptions): Promise<Report> {
  const progress = await createProgress();
  const read = await readReport(db, await heldCompanyOf(db, options), (part) =>
    progress.show([`report: reading ${part}`]),
  );
  progress.done();
  return read;
}
