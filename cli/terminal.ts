import Table from 'cli-table3';
import { printable } from '../app/process/printable.ts';

/** A progress display: redrawn in place in a terminal, otherwise a line now and then. */
export interface Progress {
  /** Shows lines; without a terminal only the first, which has to be enough. */
  show(lines: readonly string[]): void;
  done(): void;
}

const plainEveryMs = 2_000;

/** Makes a progress display. Its library takes 0.1 s to load, so it is loaded only for a terminal. */
export async function createProgress(stream: NodeJS.WriteStream = process.stderr): Promise<Progress> {
  if (stream.isTTY) {
    const { createLogUpdate } = await import('log-update');
    const update = createLogUpdate(stream);
    return { show: (lines) => update(lines.map(printable).join('\n')), done: () => update.done() };
  }
  let printedAt = 0;
  let last = '';
  const print = (text: string) => {
    if (text !== last) stream.write(`${printable(text)}\n`);
    last = text;
  };
  let waiting = '';
  return {
    show: (lines) => {
      waiting = lines[0] ?? '';
      if (performance.now() - printedAt < plainEveryMs) return;
      printedAt = performance.now();
      print(waiting);
    },
    done: () => print(waiting),
  };
}

/** Draws a table of short cells, with numbers to the right. `paragraph` prints text that may be wide. */
export function table(head: readonly string[], rows: readonly (readonly (string | number)[])[]): string[] {
  const isNumeric = (column: number) => rows.every((row) => isNumber(row[column] ?? ''));
  const built = new Table({
    head: [...head],
    colAligns: head.map((_, column) => (isNumeric(column) ? 'right' : 'left')),
    style: { head: [], border: [], compact: true },
  });
  built.push(...rows.map((row) => row.map(textOf)));
  return built.toString().split('\n');
}

/** Whether a cell is a number, a count such as `10,000+`, or empty. An account's digits are a text. */
const isNumber = (cell: string | number): boolean => typeof cell === 'number' || /^(|[\d,]+\+)$/.test(cell);

const textOf = (cell: string | number): string =>
  typeof cell === 'number' ? cell.toLocaleString('en') : printable(cell);

const narrowest = 10;

/** Writes a text after a lead; in a terminal its further lines are indented below its first. */
export function paragraph(lead: string, text: string, columns = width()): string[] {
  const most = columns === undefined ? Number.POSITIVE_INFINITY : Math.max(columns - lead.length, narrowest);
  return wrap(printable(text), most).map(
    (line, place) => (place === 0 ? lead : ' '.repeat(lead.length)) + line,
  );
}

/** Number of the terminal's columns; undefined for a file or a program, which take any width. */
const width = (): number | undefined => (process.stdout.isTTY ? process.stdout.columns : undefined);

/** Breaks a line between words, and breaks a word that is too long anywhere. */
function wrap(line: string, most: number): string[] {
  const wrapped: string[] = [];
  let rest = line;
  while (rest.length > most) {
    const space = rest.lastIndexOf(' ', most);
    const at = space > 0 ? space : most;
    wrapped.push(rest.slice(0, at));
    rest = rest.slice(at).trimStart();
  }
  return [...wrapped, rest];
}

export const milliseconds = (ms: number | null): string =>
  ms === null ? '' : `${Math.round(ms).toLocaleString('en')} ms`;
