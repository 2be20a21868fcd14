import { join, resolve } from 'node:path';
import { createMonitor, type Monitor, whyNotListening } from '../../app/process/monitor.ts';
import type { Running } from '../../app/process/running.ts';
import { systemUser } from '../../app/process/version.ts';
import type { Settings } from '../../app/settings/settings.ts';
import { openForPages, openToAsk, openWarehouse, outageOf } from '../../app/warehouse.ts';
import {
  type ConsoleLink,
  identifyByProxy,
  identifyLocal,
  keepLink,
  readLink,
} from '../../console/access.ts';
import type { ConsoleDependencies } from '../../console/asking.ts';
import { type RunningConsole, serveConsole } from '../../console/server.ts';
import { serverWaits } from '../../contract/retry-policy.ts';
import { withTimeout } from '../../db/connection/connect.ts';
import { readServer } from '../../db/connection/session.ts';
import type { Health } from '../../health/measured.ts';
import { healthOf, rememberHealth } from '../../operations/health.ts';
import { type Context, openContext } from '../context.ts';
import { CommandError, UsageError } from '../output.ts';
import { untilAsked } from '../signals.ts';

/** `metersync console`: serves the console until it is asked to stop. */
export async function consoleCommand(): Promise<void> {
  const context = await openContext({
    temporal: 'if running',
    service: false,
    quiet: false,
    existing: true,
  });
  const { log, settings, insecure } = context;
  const running: Running[] = [];
  await untilAsked(process, {
    begin: async () => {
      if (settings.console.port === 0) throw new UsageError('CONSOLE_PORT is 0: set it to a port');
      for (const { saw, todo } of insecure) log.warn({ todo }, saw);
      running.push(await startConsole(context));
      const port = await (await monitorOf(context))?.serve();
      if (port !== undefined) running.push(port);
      return [context.finished, ...running.map((part) => part.finished)];
    },
    onAsked: (signal) => log.info(`${signal}: stopping; send it again to force the end`),
    drain: async () => {
      await Promise.all(running.map((part) => part.stop()));
      await context.stop();
    },
  });
}

/** Makes the monitor of a process that serves only the console; undefined if METRICS_PORT is 0. */
async function monitorOf({ settings, log }: Context): Promise<Monitor | undefined> {
  if (settings.metrics.port === 0) return undefined;
  const readHealth = async (): Promise<Health> => ({ warehouse: unread, temporal: unread, schema: null });
  return await createMonitor({ settings: settings.metrics, parts: ['console'], readHealth, log });
}

const unread = { away: 'only workers measure this', todo: 'Ask the port of a worker.' };

/** The console of this process. `link` opens it in a browser; undefined behind a proxy. */
export interface ServedConsole extends Running {
  readonly url: string;
  readonly link: string | undefined;
}

/** Serves the console of a context. @throws CommandError when its port is taken, or its link cannot be kept */
export async function startConsole(
  { settings, stack, log }: Pick<Context, 'settings' | 'stack' | 'log'>,
  at: { readonly host: string; readonly port: number } = settings.console,
): Promise<ServedConsole> {
  const { databaseUrl } = stack;
  const pages = openForPages(settings, databaseUrl, log);
  const writer = openWarehouse(settings, databaseUrl, log, 4);
  const asking = openToAsk(settings, databaseUrl, log);
  const temporal = stack.hasTemporal ? stack.temporal : undefined;
  const { answerMs } = serverWaits;
  const readHealth = healthOf({ settings, databaseUrl, temporal, answerMs });
  let served: RunningConsole | undefined;
  const stop = async () => {
    await served?.stop();
    await Promise.all([pages.close(), writer.close(), asking.close()]);
  };
  try {
    const admitting = admit(settings);
    served = await serveConsole(
      {
        db: pages.db,
        writer: writer.db,
        settings,
        temporal: stack.temporal,
        temporalUi: settings.console.temporalUi ?? stack.temporalUi,
        readHealth: rememberHealth(() => readHealth(asking.db)),
        readAbsence: () =>
          withTimeout(readServer(asking.db), answerMs).then(
            () => undefined,
            (error: unknown) =>
              outageOf(databaseUrl, error, { embedded: settings.databaseUrl === undefined }),
          ),
        ...admitting,
        log,
        now: Date.now,
      },
      at,
    );
    const { url } = served;
    const link = admitting.link && keepLink(admitting.link, url);
    log.info(`console: ${describe(url, admitting.link, link)}`);
    return { url, link, finished: new Promise<void>(() => {}), stop };
  } catch (error) {
    await stop();
    const why = whyNotListening(error, at, 'CONSOLE') ?? whyNotKept(error, settings);
    throw why === undefined ? error : new CommandError(why);
  }
}

/** Who gets in: the users that the proxy names, or whoever has the link. */
function admit(settings: Settings): Pick<ConsoleDependencies, 'identify' | 'link'> {
  const { access } = settings.console;
  if (access.by === 'proxy') return { identify: identifyByProxy(access), link: undefined };
  const link = readLink(join(resolve(settings.dataDir), 'console-link'));
  return { identify: identifyLocal(settings.actor ?? systemUser(), link), link };
}

/** The link is printed only to a terminal, because others may be able to read the log. */
function describe(url: string, kept: ConsoleLink | undefined, link: string | undefined): string {
  if (kept === undefined || link === undefined) return url;
  return process.stdout.isTTY ? link : `${url}, which opens with the link in ${kept.file}`;
}

function whyNotKept(error: unknown, { dataDir }: Settings): string | undefined {
  const { code, path = '' } = error as NodeJS.ErrnoException;
  if (!path.startsWith(resolve(dataDir))) return undefined;
  return `the link of the console cannot be kept in ${resolve(dataDir)} (${code}): set METERSYNC_DIR to a folder that this user can write`;
}
