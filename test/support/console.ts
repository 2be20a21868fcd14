import { pino } from 'pino';
import { readSettings } from '../../app/settings/settings.ts';
import { startConsole } from '../../cli/commands/console.ts';

/** Opens the link of a console and returns the cookie that it sets; '' for a console behind a proxy. */
export async function cookieOf({ link }: { readonly link: string | undefined }): Promise<string> {
  if (link === undefined) return '';
  const [cookie = ''] = (await fetch(link)).headers.getSetCookie();
  return cookie.split(';')[0] ?? '';
}

/** Serves a console in this process, on servers that the test made. The environment names a folder for its link. */
export const serveConsole = (
  env: Readonly<Record<string, string>> & { readonly METERSYNC_DIR: string },
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
