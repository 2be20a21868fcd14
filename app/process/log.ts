import { type Logger, pino } from 'pino';
import pretty from 'pino-pretty';
import { withoutStatement } from '../../db/connection/failures.ts';
import { printable, printableValue } from './printable.ts';
import { openPrivateLog } from './private-file.ts';

export type { Logger } from 'pino';

/**
 * Creates the structured log: JSON lines, readable lines on a terminal, or a file during a progress display.
 * Leaves out secrets and SQL statements, whose parameters may be secret, and escapes text from outside.
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

/** Escapes a line of JSON; it stays the same JSON. */
const printableLine = (line: string): string => `${printable(line.trimEnd())}\n`;

/** Escapes the texts in a line of JSON that the readable log prints without quotes. */
const readableLine = (line: string): string => `${JSON.stringify(printableValue(JSON.parse(line)))}\n`;

/** Drops lines when the disk is full. Pino's own stream would throw, and keep the process from ending. */
function standardOutput(): { write(line: string): void } {
  process.stdout.on('error', () => {});
  return { write: (line) => void process.stdout.write(line) };
}
