import { randomUUID } from 'node:crypto';
import { createInterface } from 'node:readline/promises';
import { Writable } from 'node:stream';
import { createMonitor, type Monitor } from '../../app/process/monitor.ts';
import type { Running } from '../../app/process/running.ts';
import { systemUser } from '../../app/process/system-user.ts';
import { secretsOf } from '../../app/receiver-part.ts';
import { absenceOf } from '../../app/warehouse/absence.ts';
import { openForPages, openToAsk, openWarehouse } from '../../app/warehouse/warehouse.ts';
import { type Identify, identifyByPassword, identifyByProxy, identifyLocal } from '../../console/identify.ts';
import { openPasswords, passwordLine } from '../../console/passwords.ts';
import { serveConsole } from '../../console/server.ts';
import type { OperatorRole } from '../../contract/names.ts';
import { doctorPolicy, serverWaits } from '../../contract/retry-policy.ts';
import { withTimeout } from '../../db/connection/with-timeout.ts';
import { readServer } from '../../db/read/session.ts';
import type { Health } from '../../health/measured.ts';
import { healthOf } from '../../operations/health.ts';
import { rememberHealth } from '../../operations/remembered-health.ts';
import { type Context, openContext } from '../context.ts';
import { UsageError } from '../errors.ts';
import { print, say } from '../print.ts';
import { untilAsked } from '../until-asked.ts';

/** `metersync console`: serves the console until it is asked to stop. */
export async function consoleCommand(): Promise<void> {
  const context = await openContext({
    temporal: 'if running',
    service: 'if known',
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

/** Makes what observes a process that serves the console alone; undefined where METRICS_PORT is 0. */
async function monitorOf({ settings, log }: Context): Promise<Monitor | undefined> {
  if (settings.metrics.port === 0) return undefined;
  const readHealth = async (): Promise<Health> => ({ warehouse: unread, temporal: unread, schema: null });
  return await createMonitor({ settings: settings.metrics, parts: ['console'], readHealth, log });
}

const unread = { away: 'only workers have it', todo: 'Ask the port of a worker.' };

/** Serves the console of a context. @throws Error when its port is taken, or the passwords are wrong */
export async function startConsole(
  { settings, stack, service, insecure, log }: Omit<Context, 'stop' | 'access' | 'sandbox'>,
  at: { readonly host: string; readonly port: number } = settings.console,
): Promise<Running & { readonly url: string }> {
  const identify = await identifyAs(settings, log);
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
        examine: async () => {
          // Loaded on demand: only the doctor asks the service.
          const { examine } = await import('../../operations/doctor/doctor.ts');
          return await examine({
            settings,
            service,
            log,
            databaseUrl,
            insecure,
            temporal,
            standIn: settings.service.url === undefined,
            secrets: () => secretsOf(settings.webhooks, log),
            now: Date.now,
            probeId: `metersync-probe-${randomUUID()}`,
            probeArrivesWithinMs: doctorPolicy.probeArrivesMs,
          });
        },
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

async function identifyAs(
  settings: Pick<Context['settings'], 'console' | 'actor'>,
  log: Context['log'],
): Promise<Identify> {
  const { access } = settings.console;
  if (access.by === 'proxy') return identifyByProxy(access);
  if (access.by === 'passwords') return identifyByPassword(await openPasswords(access.file, log));
  return identifyLocal(settings.actor ?? systemUser());
}

const passwordLengthMin = 12;

/** `metersync console password`: reads a password and prints its line for CONSOLE_PASSWORDS_FILE. */
export async function consolePassword(name: string, options: { role: OperatorRole }): Promise<void> {
  if (/[:\p{Cc}]/u.test(name))
    throw new UsageError('the name must not contain a colon or a control character');
  const password = await readPassword(name);
  if (password.length < passwordLengthMin)
    throw new UsageError(`the password needs at least ${passwordLengthMin} characters`);
  print(await passwordLine(name, options.role, password));
  if (process.stdout.isTTY) say('Add this line to the file that CONSOLE_PASSWORDS_FILE names.');
}

/** Reads a line of standard input; a terminal shows nothing of it. */
async function readPassword(name: string): Promise<string> {
  const terminal = process.stdin.isTTY === true;
  if (terminal) say(`Password of ${name}, which is not shown:`);
  const silent = new Writable({ write: (_chunk, _encoding, done) => done() });
  const lines = createInterface({ input: process.stdin, output: silent, terminal });
  try {
    for await (const line of lines) return line;
    return '';
  } finally {
    lines.close();
  }
}
