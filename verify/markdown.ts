/** First line of a page that is generated completely. */
export const generatedFrom = (source: string): string =>
  `<!-- Generated from ${source}: change it there, then run "npm run verify -- --write". -->`;

/** Writes a table. Characters that would end a cell are escaped. */
export function markdownTable(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.map(escapeCell).join(' | ')} |`;
  return [line(head), `${'|---'.repeat(head.length)}|`, ...rows.map(line)].join('\n');
}

const escapeCell = (cell: string): string => cell.replaceAll('|', '\\|').replaceAll('\n', ' ');

/** Puts text between the two comments that mark the generated part of a page. */
export function replaceGenerated(page: string, text: string): string {
  const [begin, end] = ['<!-- generated: begin -->', '<!-- generated: end -->'];
  const [from, to] = [page.indexOf(begin), page.indexOf(end)];
  if (from < 0 || to < from) throw new Error(`the page has no part between ${begin} and ${end}`);
  return `${page.slice(0, from + begin.length)}\n${text}\n${page.slice(to)}`;
}
