import { canonicalUuid } from '../contract/values.ts';
import { type SiteAttribute, type SiteValues, siteAttributes, UnusableSiteValues } from '../db/sites.ts';

/**
 * Reads sites from CSV, as `metersync export analytics.sites` writes it. An empty cell unsets a value.
 * @throws UnusableSiteValues that names the line
 */
export function readSiteValues(csv: string): SiteValues[] {
  const [header = [], ...rows] = parseCsv(csv.replace(/^\uFEFF/, ''));
  const idPlace = header.indexOf('site_id');
  const attributes = siteAttributes.filter((name) => header.includes(name));
  if (idPlace === -1 || attributes.length === 0)
    throw new UnusableSiteValues(
      `the first line has to name site_id and at least one of ${siteAttributes.join(', ')}`,
    );
  return rows.map((row, place) => {
    const siteId = canonicalUuid(row[idPlace] ?? '');
    if (siteId === undefined)
      throw new UnusableSiteValues(
        `row ${place + 1} after the header: "${row[idPlace] ?? ''}" is not the id of a site`,
      );
    const value = (name: SiteAttribute): string | null => row[header.indexOf(name)]?.trim() || null;
    return { siteId, values: Object.fromEntries(attributes.map((name) => [name, value(name)])) };
  });
}

/** A cell, quoted or not, and what ends it. */
const cell = /(?:"((?:[^"]|"")*)"|([^,"\r\n]*))(,|\r?\n|$)/y;

/** Reads CSV as RFC 4180 describes it; empty lines are left out. */
function parseCsv(text: string): string[][] {
  const rows: string[][] = [];
  let row: string[] = [];
  cell.lastIndex = 0;
  while (cell.lastIndex < text.length) {
    const found = cell.exec(text);
    if (found === null)
      throw new UnusableSiteValues(
        `line ${rows.length + 1} is not CSV: a cell contains a quote, or a quote is not closed`,
      );
    const [, quoted, plain, end] = found;
    row.push(quoted?.replaceAll('""', '"') ?? plain ?? '');
    if (end === ',') continue;
    if (row.length > 1 || row[0] !== '') rows.push(row);
    row = [];
  }
  return row.length === 0 ? rows : [...rows, row];
}
