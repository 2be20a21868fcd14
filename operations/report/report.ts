import type { Report } from '../../db/read/report.ts';

export { reportText } from './summary.ts';

/** The report as one page. What draws its charts is loaded for it alone: a report in the terminal has none. */
export async function reportPage(report: Report): Promise<string> {
  const { pageOf } = await import('./page.ts');
  return await pageOf(report);
}
