import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { createLog, type Logger } from '../app/process/log.ts';
import type { ServiceAccess } from '../app/service.ts';
import { readSettings, type Settings } from '../app/settings/settings.ts';
import { requireSafeTransport } from '../app/settings/transport.ts';
import { openStack, type Stack } from '../app/stack.ts';
import { requireUnused } from '../embedded/start.ts';
import { say } from './output.ts';
import { runningSandbox, type SandboxSize, startSandboxProcess } from './sandbox.ts';

export type Context = Readonly<Awaited<ReturnType<typeof openContext>>>;

export interface Need {
  /** Whether the command needs a warehouse. `if there`: none is made; without one, its address is empty. */
  readonly postgres?: boolean | 'if there';
  /** `if running`: the Temporal of the settings or a running embedded Temporal; none is started. */
  readonly temporal: boolean | 'if running';
  /** Whether an embedded Temporal that is started serves its web page. */
  readonly temporalUi?: boolean;
  /** `if known`: the service of the settings or a running sandbox; if there is none, its URL is empty. */
  readonly service: boolean | 'if known';
  /** Opens only existing data: makes no data folder and no database. */
  readonly existing?: boolean;
  /** Refuses a data folder that another process uses, if anything of this command would be in it. */
  readonly alone?: boolean;
  /** Logs go to a file, because a progress display has the terminal. */
  readonly quiet: boolean;
  readonly sandbox?: Partial<SandboxSize>;
  /** Runs while the sandbox starts. */
  readonly meanwhile?: (begun: { settings: Settings; stack: Stack; log: Logger }) => Promise<void>;
  readonly dataDir?: string;
  /** Ignores the servers of the environment, so that the demo touches none of the user's servers. */
  readonly standalone?: boolean;
  readonly onLine?: (line: string) => void;
}

const standInSize: SandboxSize = { companies: 10, documents: 100, intervalDays: 14 };

/** Opens what a command needs: the servers and service of the environment, or their stand-ins. */
export async function openContext(need: Need) {
  const settings = settingsFor(need);
  const { postgres = true, temporal } = need;
  const calls = need.service !== false;
  const insecure = requireSafeTransport(settings, {
    postgres: postgres !== false,
    temporal: temporal !== false,
    service: calls,
  });
  const dir = resolve(settings.dataDir);
  const configured =
    settings.databaseUrl !== undefined && settings.temporalConfigured && settings.service.url !== undefined;
  const alone = need.alone === true && !configured;
  if (alone) requireUnused(dir);
  const log = logOf(need, settings, dir);
  const onLine = need.onLine ?? say;
  const standsIn = calls && settings.service.url === undefined;
  const looking = standsIn ? runningSandbox(dir) : Promise.resolve(undefined);
  // A command that starts no servers looks for the sandbox while the stack is opened.
  const running = need.existing ? undefined : await looking;
  const wantsSandbox = standsIn && need.service === true;
  const stack = await openStack(settings, {
    postgres,
    temporal,
    temporalUi: need.temporalUi ?? false,
    sandbox: wantsSandbox && running === undefined,
    existing: need.existing ?? false,
    alone,
    log: onLine,
  });
  let sandbox = running;
  try {
    const prepared = need.meanwhile?.({ settings, stack, log });
    // Its failure is thrown below.
    prepared?.catch(() => {});
    if (need.existing) {
      if (wantsSandbox && stack.databaseUrl !== '') {
        // A running sandbox that does not answer may be waiting for Postgres, as a second sandbox would.
        const { requireAnswer } = await import('../app/schema.ts');
        await requireAnswer(settings, stack.databaseUrl, log);
      }
      sandbox = await looking;
    }
    if (wantsSandbox && sandbox === undefined) {
      sandbox = await startSandboxProcess({
        databaseUrl: await stack.databaseFor('sandbox'),
        dataDir: dir,
        size: { ...standInSize, ...need.sandbox },
        // History ends today, so that reports have no months without bills before the live bills.
        more: { until: 'today' },
        onLine: (line) => log.debug({ sandbox: line }, 'sandbox'),
      });
    }
    await prepared;
    const service =
      sandbox === undefined
        ? { url: settings.service.url ?? '', apiKey: settings.service.apiKey ?? '' }
        : { url: sandbox.apiUrl, apiKey: sandbox.apiKey };
    const finished = Promise.race([stack.finished, ...(sandbox === undefined ? [] : [sandbox.finished])]);
    // Commands that end by themselves do not wait for it.
    finished.catch(() => {});
    return {
      settings,
      log,
      stack,
      service,
      sandbox,
      insecure,
      /** Rejects when a stand-in that was started here ends by itself. Otherwise never settles. */
      finished,
      access: async (): Promise<ServiceAccess> => {
        // Loaded on demand: most commands only read the warehouse.
        const { openService } = await import('../app/service.ts');
        return openService(settings, service.url, service.apiKey, log);
      },
      stop: async () => {
        await sandbox?.stop();
        await stack.stop();
      },
    };
  } catch (error) {
    await sandbox?.stop();
    await stack.stop();
    throw error;
  }
}

/** Opens what a command needs, and closes it when the work is over. */
export async function withContext<T>(need: Need, work: (context: Context) => Promise<T>): Promise<T> {
  const context = await openContext(need);
  try {
    return await work(context);
  } finally {
    await context.stop();
  }
}

/** Opens the log; a command that only reads existing data makes no folder for it. */
function logOf({ quiet, existing = false }: Need, { logLevel: level }: Settings, dir: string): Logger {
  if (!quiet) return createLog({ level });
  if (existing && !existsSync(dir)) return createLog({ level: 'silent' });
  try {
    return createLog({ level, file: join(dir, 'metersync.log') });
  } catch (error) {
    // Users with servers of their own need nothing in this folder.
    say(`METERSYNC_DIR: the log cannot be written in ${dir} (${(error as NodeJS.ErrnoException).code})`);
    return createLog({ level: 'silent' });
  }
}

function settingsFor(need: Need): Settings {
  const { LOG_LEVEL, HTTPS_PROXY, https_proxy, NO_PROXY, no_proxy } = process.env;
  const kept = { LOG_LEVEL, HTTPS_PROXY, https_proxy, NO_PROXY, no_proxy };
  const settings = readSettings(need.standalone ? kept : process.env);
  return need.dataDir === undefined ? settings : { ...settings, dataDir: need.dataDir };
}
