import { pino } from 'pino';
import { readSettings } from '../../app/settings/settings.ts';
import { startConsole } from '../../cli/commands/console.ts';

/** Serves a console in this process, on servers that the test made. */
export const serveConsole = (
  env: Readonly<Record<string, string>>,
  servers: {
    readonly databaseUrl: string;
    readonly temporal: { readonly address: string; readonly namespace: string };
    readonly temporalUi?: string;
  },
) =>
  startConsole(
    {
      settings: readSettings(env),
      log: pino({ level: 'silent' }),
      stack: {
        temporalUi: undefined,
        ...servers,
        hasTemporal: true,
        standIns: [],
        finished: new Promise<void>(() => {}),
        databaseFor: async () => '',
        stop: async () => {},
      },
    },
    { host: '127.0.0.1', port: 0 },
  );
