import { createMonitor, type Monitor } from '../../app/process/monitor.ts';
import type { Running } from '../../app/process/running.ts';
import { systemUser } from '../../app/process/system-user.ts';
import { absenceOf } from '../../app/warehouse/absence.ts';
import { openForPages, openToAsk, openWarehouse } from '../../app/warehouse/warehouse.ts';
import { identifyByProxy, identifyLocal } from '../../console/identify.ts';
import { serveConsole } from '../../console/server.ts';
import { serverWaits } from '../../contract/retry-policy.ts';
import { withTimeout } from '../../db/connection/with-timeout.ts';
import { readServer } from '../../db/read/session.ts';
import type { Health } from '../../health/measured.ts';
import { healthOf } from '../../operations/health.ts';
import { rememberHealth } from '../../operations/remembered-health.ts';
import { type Context, openContext } from '../context.ts';
import { UsageError } from '../errors.ts';
import { untilAsked } from '../until-asked.ts';

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
      return running.map((part) => part.finished);
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

/** Serves the console of a context. @throws Error when its port is taken */
export async function startConsole(
  { settings, stack, log }: Pick<Context, 'settings' | 'stack' | 'log'>,
  at: { readonly host: string; readonly port: number } = settings.console,
): Promise<Running & { readonly url: string }> {
  const { access } = settings.console;
  const identify =
    access.by === 'proxy' ? identifyByProxy(access) : identifyLocal(settings.actor ?? systemUser());
  const { databaseUrl } = stack;
  const pages = openForPages(settings, databaseUrl, log);
  const writer = openWarehouse(settings, databaseUrl, log, 4);
  const asking = openToAsk(settings, databaseUrl, log);
  const temporal = stack.hasTemporal ? stack.temporal : undefined;
  const { answerMs } = serverWaits;
  const readHealth = healthOf({ settings, databaseUrl, temporal, answerMs });
  const closeAll = () => Promise.all([pages.close(), writer.close(), asking.close()]);
  try {
    const served = await serveConsole(
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
            (error: unknown) => absenceOf(databaseUrl, error),
          ),
        identify,
        log,
        now: Date.now,
      },
      at,
    );
    log.info(`console: ${served.url}`);
    return {
      url: served.url,
      finished: new Promise<void>(() => {}),
      stop: async () => {
        await served.stop();
        await closeAll();
      },
    };
  } catch (error) {
    await closeAll();
    throw error;
  }
}
