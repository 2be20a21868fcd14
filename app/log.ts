import { mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import { type Logger, pino } from 'pino';
import pretty from 'pino-pretty';

export type { Logger } from 'pino';

/**
 * Structured logs: JSON lines on standard output, readable ones when that is a terminal, or a file while a progress
 * display has the terminal. Secrets have no place in them.
 */
export function createLog(options: { level: string; file?: string }): Logger {
  const serializers = { err: pino.stdSerializers.err, error: pino.stdSerializers.err };
  const redact = {
    paths: ['apiKey', 'secret', 'secrets', '*.apiKey', '*.secret', 'headers'],
    censor: '[redacted]',
  };
  if (options.file !== undefined) {
    mkdirSync(dirname(options.file), { recursive: true });
    return pino(
      { level: options.level, redact, serializers },
      pino.destination({ dest: options.file, sync: true }),
    );
  }
  if (process.stdout.isTTY) {
    return pino(
      { level: options.level, redact, serializers },
      pretty({ ignore: 'pid,hostname', translateTime: 'SYS:HH:MM:ss.l' }),
    );
  }
  return pino({ level: options.level, redact, serializers });
}
