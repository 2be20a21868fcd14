/**
 * Lists every numbered statement, bullet and table row of the service's document, as `6.1.3` and `6.2 row 3`.
 * Rows and bullets count from the top of their section, rows through all its tables. Lines that end in "not
 * shown." are no statements.
 */
export function statementsOfDocument(text: string): string[] {
  const found: string[] = [];
  let section = '';
  let rows = 0;
  let bullets = 0;
  for (const line of text.split('\n')) {
    const heading = /^#{2,} (\d+(?:\.\d+)*)\b/.exec(line)?.[1];
    if (heading !== undefined) {
      section = heading;
      rows = 0;
      bullets = 0;
    } else if (section === '' || /: not shown\.$/.test(line)) {
      // The preface, or a line that is no statement.
    } else if (/^\|[-| ]+\|$/.test(line)) {
      // The row before this line was the header of its table.
      found.pop();
      rows -= 1;
    } else if (line.startsWith('| ')) {
      rows += 1;
      found.push(`${section} row ${rows}`);
    } else if (/^\d+\. /.test(line)) {
      found.push(`${section}.${Number.parseInt(line, 10)}`);
    } else if (line.startsWith('- ')) {
      bullets += 1;
      found.push(`${section}.${bullets}`);
    }
  }
  return found;
}

/**
 * Lists the differences between the list of statements and the document. The prose of a section may be a
 * statement too.
 */
export function differencesFromDocument(text: string, listed: readonly string[]): string[] {
  const stated = statementsOfDocument(text);
  const sections = [...text.matchAll(/^#{2,} (\d+(?:\.\d+)*)\b/gm)].map(([, section]) => section);
  return [
    ...stated.filter((id) => !listed.includes(id)).map((id) => `${id} of the document is not listed`),
    ...listed
      .filter((id) => !stated.includes(id) && !sections.includes(id))
      .map((id) => `${id} is listed and not in the document`),
  ];
}
