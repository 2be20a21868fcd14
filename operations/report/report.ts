import type { Report } from '../../db/read/report.ts';

export { reportText } from './summary.ts';

/**
 * Writes the report as one page. The chart library is loaded only here: a report in the terminal has no
 * charts.
 */
export async function reportPage(report: Report): Promise<string> {
  const { pageOf } = await import('./page.ts');
  return await pageOf(report);
}
