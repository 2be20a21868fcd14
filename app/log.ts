import { type Logger, pino } from 'pino';
import pretty from 'pino-pretty';
import { withoutStatement } from '../db/failures.ts';
import { printable, printableValue } from './printable.ts';
import { openPrivateLog } from './private-file.ts';

export type { Logger } from 'pino';

/**
 * Structured logs: JSON lines on standard output, readable ones when that is a terminal, or a file while a progress
 * display has the terminal. Secrets have no place in them, nor have statements, whose parameters may be some. What others
 * wrote steers no terminal, in which a log file may be looked at too.
 */
export function createLog(options: { level: string; file?: string }): Logger {
  const serialize = (error: unknown) => pino.stdSerializers.err(withoutStatement(error) as Error);
  const serializers = { err: serialize, error: serialize };
  const redact = {
    paths: ['apiKey', 'secret', 'secrets', '*.apiKey', '*.secret', 'headers'],
    censor: '[redacted]',
  };
  if (options.file !== undefined) {
    const file = pino.destination({ dest: openPrivateLog(options.file), sync: true });
    file.on('error', () => {});
    return pino({ level: options.level, redact, serializers, hooks: { streamWrite: printableLine } }, file);
  }
  if (process.stdout.isTTY) {
    return pino(
      { level: options.level, redact, serializers, hooks: { streamWrite: readableLine } },
      pretty({ ignore: 'pid,hostname', translateTime: 'SYS:HH:MM:ss.l' }),
    );
  }
  const hooks = { streamWrite: printableLine };
  return pino({ level: options.level, redact, serializers, hooks }, standardOutput());
}

/** A line of JSON that is the same JSON. */
const printableLine = (line: string): string => `${printable(line.trimEnd())}\n`;

/** A line of JSON whose texts are shown as they are. */
const readableLine = (line: string): string => `${JSON.stringify(printableValue(JSON.parse(line)))}\n`;

/**
 * A full disk must not end what works without its log: lines that find no room are lost. Pino's own stream would throw,
 * and then hold the end of the process until there is room.
 */
function standardOutput(): { write(line: string): void } {
  process.stdout.on('error', () => {});
  return { write: (line) => void process.stdout.write(line) };
}
