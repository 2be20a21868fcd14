import { readFileSync } from 'node:fs';
import { extname } from 'node:path';
import { unreadableFile } from '../../app/settings/secret-files.ts';
import { type ExportFormat, exportFormats } from '../../contract/names.ts';
import { counted } from '../../contract/words.ts';
import type { Database, Warehouse } from '../../db/connection/connect.ts';
import { type Report, readReport } from '../../db/read/report.ts';
import {
  acceptProposedZones,
  type ListedSite,
  listSites,
  setSites,
  UnusableSiteValues,
} from '../../db/sites.ts';
import { exportRelation, UnknownRelation } from '../../operations/export/export.ts';
import { sheetRowsMax } from '../../operations/export/spreadsheet.ts';
import { NotBegun, recorded } from '../../operations/recorded.ts';
import { reportText } from '../../operations/report/summary.ts';
import { readSiteValues } from '../../operations/sites.ts';
import { asOperation } from '../command-line.ts';
import {
  answer,
  printingStream,
  printJson,
  requireFolder,
  say,
  UsageError,
  writeOutputFile,
} from '../output.ts';
import { createProgress, paragraph } from '../terminal.ts';
import { type CompanyOptions, heldCompanyOf, withWarehouse } from '../warehouse.ts';

interface ReportOptions extends CompanyOptions {
  readonly html?: string;
  readonly json?: boolean;
}

/** `metersync report`: reports cost, usage, coverage, corrections and more, of a company or of all. */
export async function report(options: ReportOptions): Promise<void> {
  const { html, json } = options;
  if (html !== undefined) requireFolder(html);
  await withWarehouse({ temporal: false }, async ({ db }) => {
    if (html === undefined) {
      answer(options, await readWithProgress(db, options), reportText);
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

interface ExportCommandOptions extends CompanyOptions {
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

interface SitesOptions extends CompanyOptions {
  readonly file?: string;
  readonly acceptProposals?: boolean;
  readonly json?: boolean;
}

/** `metersync sites`: lists sites with the values set for them, or sets values from a file or addresses. */
export async function sites(options: SitesOptions): Promise<void> {
  const { file, acceptProposals = false } = options;
  const isNarrowed = options.company !== undefined || options.externalId !== undefined;
  if (file !== undefined && (acceptProposals || isNarrowed))
    throw new UsageError(
      '--file names the sites itself: leave out --accept-proposals, --company and --external-id',
    );
  const given = file === undefined ? undefined : valuesIn(file);
  await withWarehouse({ temporal: false }, async ({ db, context }) => {
    const companyId = await heldCompanyOf(db, options);
    if (given === undefined && !acceptProposals) {
      const listed = await listSites(db, { companyId });
      answer(options, { sites: listed }, () => describeSites(listed));
      return;
    }
    const inWords = (changed: number) => `${counted(changed, 'site')} changed`;
    const changed = await recorded(
      db,
      asOperation(context.settings, 'sites set', { company: companyId, file }),
      async () => {
        if (given === undefined) return await acceptProposedZones(db, companyId);
        return await setSites(db, given).catch((error) => {
          throw error instanceof UnusableSiteValues ? new NotBegun(error.message) : error;
        });
      },
      inWords,
    );
    answer(options, { changed }, () => [`${inWords(changed)}.`]);
  });
}

function valuesIn(file: string) {
  let csv: string;
  try {
    csv = readFileSync(file, 'utf8');
  } catch (error) {
    throw new UsageError(`${file} ${unreadableFile(error).problem}`);
  }
  try {
    return readSiteValues(csv);
  } catch (error) {
    throw new UsageError(`${file}: ${(error as Error).message}`);
  }
}

function describeSites(listed: readonly ListedSite[]): string[] {
  if (listed.length === 0) return ['There are no sites yet: run metersync backfill all.'];
  const unset = listed.filter(({ time_zone_source: source }) => source === 'default');
  const proposed = unset.filter(({ proposed_time_zone: zone }) => zone !== null);
  return [
    ...listed.flatMap((site) =>
      paragraph('', `${site.company ?? site.company_id}, ${site.site ?? site.site_id}: ${settingsOf(site)}`),
    ),
    '',
    unset.length === 0
      ? 'Each site has a time zone.'
      : `${counted(unset.length, 'site')} without a time zone: their days and hours are in UTC. To set time zones, run metersync export analytics.sites --out sites.csv, edit the file, and run metersync sites --file sites.csv.`,
    ...(proposed.length === 0
      ? []
      : [
          `For ${counted(proposed.length, 'site')}, the address proposes a time zone: metersync sites --accept-proposals sets it.`,
        ]),
  ];
}

function settingsOf(site: ListedSite): string {
  const { time_zone_source: source, proposed_time_zone: proposed, floor_area: area } = site;
  const zone = {
    site: site.time_zone,
    company: `${site.time_zone}, as set for the company`,
    default: `no time zone${proposed === null ? '' : `, ${proposed} proposed`}`,
  }[source];
  const region = site.emission_region === null ? [] : [`emission region ${site.emission_region}`];
  return [zone, ...region, ...(area === null ? [] : [`${area} ${site.floor_area_units ?? ''}`.trim()])].join(
    '; ',
  );
}
