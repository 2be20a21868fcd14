import Table from 'cli-table3';
import { printable } from '../app/process/printable.ts';

/** A progress display: redrawn in place in a terminal, otherwise a line now and then. */
export interface Progress {
  /** Shows lines; without a terminal only the first, which has to be enough. */
  show(lines: readonly string[]): void;
  done(): void;
}

const plainEveryMs = 2_000;

/**
 * Makes a progress display. The drawing library, which takes 0.1 s to load, is loaded only for a terminal.
 */
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

/** One text on a line of its own, several such texts, or a number. */
type Cell = string | readonly string[] | number;

export interface Rows {
  readonly head: readonly string[];
  readonly rows: readonly (readonly Cell[])[];
}

/**
 * Draws a table without inner borders, with numbers to the right. In a terminal it is no wider than that:
 * texts are wrapped, never cut.
 */
export function table(
  head: readonly string[],
  rows: readonly (readonly Cell[])[],
  columns = width(),
): string[] {
  const numeric = head.map((_, column) => rows.every((row) => isNumber(row[column] ?? '')));
  const lines = [head, ...rows].map((row) => row.map(linesOf));
  const widths = shrink(lines, columns);
  const [top = [], ...rest] = lines.map((row) =>
    row.map((cell, column) => cell.flatMap((line) => wrap(line, widths[column] ?? line.length)).join('\n')),
  );
  const built = new Table({
    head: top,
    colAligns: numeric.map((is) => (is ? 'right' : 'left')),
    // Rows of one line need no rule between them.
    style: { head: [], border: [], compact: !rest.flat().some((cell) => cell.includes('\n')) },
  });
  built.push(...rest);
  return built.toString().split('\n');
}

/** Whether a cell is a number, a count beyond what is counted, or empty. An account's digits are a text. */
const isNumber = (cell: Cell): boolean =>
  typeof cell === 'number' || (typeof cell === 'string' && /^(|[\d,]+\+)$/.test(cell));

/** Draws the first of the tables that fits into the terminal; if none does, the last one, wrapped to fit. */
export function tableOf(choices: readonly [Rows, ...Rows[]], columns = width()): string[] {
  const fits = ({ head, rows }: Rows): boolean => {
    const widths = columnWidths([head, ...rows].map((row) => row.map(linesOf)));
    return columns === undefined || widths.reduce(sum, edges(widths)) <= columns;
  };
  const { head, rows } = choices.find(fits) ?? (choices.at(-1) as Rows);
  return table(head, rows, columns);
}

/** Writes a text after a lead; in a terminal its further lines are indented below its first. */
export function paragraph(lead: string, text: string, columns = width()): string[] {
  const most = columns === undefined ? Number.POSITIVE_INFINITY : Math.max(columns - lead.length, narrowest);
  return wrap(printable(text), most).map(
    (line, place) => (place === 0 ? lead : ' '.repeat(lead.length)) + line,
  );
}

/**
 * Number of the terminal's columns; undefined where output goes to a file or a program, which take any width.
 */
const width = (): number | undefined => (process.stdout.isTTY ? process.stdout.columns : undefined);

const sum = (a: number, b: number): number => a + b;
const edges = (widths: readonly number[]): number => 3 * widths.length + 1;

/** Returns for each column the lines of its cells, including its head. */
const columnsOf = (lines: readonly (readonly (readonly string[])[])[]): string[][] =>
  (lines[0] ?? []).map((_, column) => lines.flatMap((row) => row[column] ?? []));

const longest = (texts: readonly string[]): number => Math.max(...texts.map((text) => text.length));

const columnWidths = (lines: readonly (readonly (readonly string[])[])[]): number[] =>
  columnsOf(lines).map(longest);

/** Minimum width of a column. */
const narrowest = 10;
/** A word of this length or more is an id, which people may want to copy. */
const idLength = 30;

/**
 * Narrows the widest columns until all fit: first without breaking words, then without breaking ids, then
 * anyhow.
 */
function shrink(lines: readonly (readonly (readonly string[])[])[], columns: number | undefined): number[] {
  const widths = columnWidths(lines);
  if (columns === undefined) return widths;
  const words = columnsOf(lines).map((texts) => longest(texts.flatMap((text) => text.split(' '))));
  const ids = words.map((word) => (word < idLength ? narrowest : word));
  for (const floors of [words, ids, words.map(() => narrowest)]) {
    while (widths.reduce(sum, edges(widths)) > columns) {
      const spare = widths.map((width, column) => (width > (floors[column] ?? 0) ? width : 0));
      const widest = Math.max(...spare);
      if (widest <= narrowest) break;
      widths[spare.indexOf(widest)] = widest - 1;
    }
  }
  return widths;
}

/** Breaks a line between words, and a word that is too long anywhere. */
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

function linesOf(cell: Cell): string[] {
  if (typeof cell === 'number') return [cell.toLocaleString('en')];
  return typeof cell === 'string' ? [printable(cell)] : cell.map(printable);
}

export const milliseconds = (ms: number | null): string =>
  ms === null ? '' : `${Math.round(ms).toLocaleString('en')} ms`;
