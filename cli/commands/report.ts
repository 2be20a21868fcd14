import { readReport } from '../../db/read/report.ts';
import { reportPage, reportText } from '../../operations/report/report.ts';
import { type CompanyOptions, heldCompanyOf } from '../company.ts';
import { requireFolder, writeOutputFile } from '../output-file.ts';
import { print, printJson, say } from '../print.ts';
import { createProgress } from '../terminal.ts';
import { withWarehouse } from '../warehouse.ts';

export interface ReportOptions extends CompanyOptions {
  readonly html?: string;
  readonly json?: boolean;
}

/**
 * `metersync report`: reports cost, usage, load, coverage, corrections and open tasks, of a company or of
 * all.
 */
export async function report(options: ReportOptions): Promise<void> {
  if (options.html !== undefined) requireFolder(options.html);
  await withWarehouse({ temporal: false }, async ({ db }) => {
    const progress = await createProgress();
    const read = await readReport(db, await heldCompanyOf(db, options), (part) =>
      progress.show([`report: reading ${part}`]),
    );
    progress.done();
    if (options.json) printJson(read);
    else if (options.html === undefined) print(...reportText(read));
    if (options.html === undefined) return;
    const page = await reportPage(read);
    await writeOutputFile(options.html, async (file) => void file.write(page));
    say(`report written to ${options.html}`);
  });
}
