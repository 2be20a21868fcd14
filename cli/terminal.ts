import Table from 'cli-table3';
import { printable } from '../app/printable.ts';

/** A display that is written over in a terminal, and a line now and then where there is none. */
export interface Progress {
  /** The first line says it all; the rest is for a terminal. */
  show(lines: readonly string[]): void;
  done(): void;
}

const plainEveryMs = 2_000;

/** Loads what draws in a terminal only where there is one: it takes a tenth of a second. */
export async function createProgress(stream: NodeJS.WriteStream = process.stderr): Promise<Progress> {
  if (stream.isTTY) {
    const { createLogUpdate } = await import('log-update');
    const update = createLogUpdate(stream);
    return { show: (lines) => update(lines.map(printable).join('\n')), done: () => update.done() };
  }
  let shownAt = 0;
  let last = '';
  const print = (text: string) => {
    if (text !== last) stream.write(`${printable(text)}\n`);
    last = text;
  };
  let waiting = '';
  return {
    show: (lines) => {
      waiting = lines[0] ?? '';
      if (performance.now() - shownAt < plainEveryMs) return;
      shownAt = performance.now();
      print(waiting);
    },
    done: () => print(waiting),
  };
}

/** A text, which takes one line whatever it holds; several; or a number. */
type Cell = string | readonly string[] | number;

/** Lines of a table without borders inside, numbers to the right. */
export function table(head: readonly string[], rows: readonly (readonly Cell[])[]): string[] {
  const numeric = head.map((_, column) =>
    rows.every((row) => typeof row[column] === 'number' || row[column] === ''),
  );
  const built = new Table({
    head: head.map(printable),
    colAligns: numeric.map((is) => (is ? 'right' : 'left')),
    style: { head: [], border: [], compact: true },
  });
  for (const row of rows) {
    built.push(row.map(cellText));
  }
  return built.toString().split('\n');
}

function cellText(cell: Cell): string {
  if (typeof cell === 'number') return cell.toLocaleString('en');
  return typeof cell === 'string' ? printable(cell) : cell.map(printable).join('\n');
}

export const milliseconds = (ms: number | null): string =>
  ms === null ? '' : `${Math.round(ms).toLocaleString('en')} ms`;
