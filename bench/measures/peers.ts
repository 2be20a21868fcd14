import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { access, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { text } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { backfillBounds } from '../../contract/limits.ts';
import { taskQueues, workflowIds, workflowNames } from '../../contract/names.ts';
import type { CheapServiceCalls, Recorded } from '../cheap-service.ts';
import { type LoadReport, newSecret, percentile, perSecond } from '../load.ts';
import { type Bench, type Figures, type Measure, median } from '../measure.ts';
import type { StripeCalls } from '../peers/stripe.ts';
import {
  type Generator,
  type Pipeline,
  runBackfill,
  startGenerator,
  startPipeline,
  withTemporal,
} from '../pipeline.ts';
import { withClient } from '../stack.ts';
import { untilReceived } from '../warehouse.ts';

export const peers: Measure = {
  name: 'peers',
  about: 'in turn with dlt on the same pages, and with stripe-sync-engine on as many events; fetches both',
  onlyByName: true,
  run: measurePeers,
};

const levels = [512, 64] as const;
type Level = (typeof levels)[number];

async function measurePeers(bench: Bench): Promise<Figures> {
  const python = await installDlt(bench.say);
  const folder = await installStripeSync(bench.say);
  return { ...(await measureBackfill(bench, python)), ...(await measureEvents(bench, folder)) };
}

/** Measures a first load by dlt and by metersync of the same pages in memory, each with its own database. */
async function measureBackfill(bench: Bench, python: string): Promise<Figures> {
  const { peersCompanies, peersDocuments, rounds } = bench.size;
  const shape = { companies: peersCompanies, documents: peersDocuments };
  const made = await bench.child<CheapServiceCalls>('cheap-service.ts').call('make', shape);
  bench.say(
    `${made.documents.toLocaleString('en')} documents of ${Math.round(made.bytes / made.documents)} B, served from memory`,
  );
  const dlt: number[] = [];
  const ours: number[] = [];
  for (let round = 1; round <= rounds; round++) {
    dlt.push(await loadWithDlt(bench, python, made));
    ours.push(await loadWithMetersync(bench, made));
    bench.say(
      `round ${round} of ${rounds}: ${dlt.at(-1)?.toFixed(0)} documents/s by dlt, ${ours.at(-1)?.toFixed(0)} by metersync`,
    );
  }
  return {
    backfillTimesDlt: median(ours.map((rate, round) => rate / (dlt[round] ?? Number.NaN))),
    backfillPerSecond: median(ours),
    dltPerSecond: median(dlt),
  };
}

/** Returns the documents per second between the start and the end of the run, without the start-up of dlt. */
async function loadWithDlt(bench: Bench, python: string, { url, documents }: Recorded): Promise<number> {
  const databaseUrl = await bench.stack.database('dlt');
  const dir = await mkdtemp(join(bench.stack.dir, 'dlt-'));
  const child = spawn(python, [join(import.meta.dirname, '../peers/dlt_backfill.py')], {
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  bench.atEnd(async () => {
    child.kill('SIGKILL');
  });
  const workers = backfillBounds.companiesAtOnce;
  child.stdin.end(JSON.stringify({ url, apiKey: 'bench', databaseUrl, dataset: 'peer', workers, dir }));
  const [said, wrong, [status]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'close') as Promise<[number | null]>,
  ]);
  if (status !== 0) throw new Error(`dlt ended with status ${status}: ${wrong.trim().slice(-600)}`);
  const { seconds } = JSON.parse(said.trim().split('\n').at(-1) ?? '') as { seconds: number };
  await proveDocuments(databaseUrl, 'peer.documents', documents);
  return documents / seconds;
}

/** Returns the documents per second of a backfill that also reads the list of companies, as dlt does. */
async function loadWithMetersync(bench: Bench, { url, documents }: Recorded): Promise<number> {
  // Turns off the other endpoints, because dlt does not read them either.
  const endpoints = { connections: null, meters: null, usageData: null, intervals: null };
  const service = { url, apiKey: 'bench', endpoints };
  const pipeline = await startPipeline(bench, { service, filled: false });
  // Runs a workflow first, so that the start of the worker is not timed, like the imports of dlt.
  await withTemporal(pipeline.temporal, (client) =>
    client.workflow.execute(workflowNames.backfillUpdates, {
      workflowId: workflowIds.reconcile('first'),
      taskQueue: taskQueues.backfill,
      args: [{}],
    }),
  );
  const seconds = await runBackfill(pipeline);
  await proveDocuments(pipeline.databaseUrl, 'utility.documents', documents);
  await pipeline.process.stop();
  return documents / seconds;
}

async function proveDocuments(databaseUrl: string, table: string, documents: number): Promise<void> {
  const { rows } = await withClient(databaseUrl, (client) =>
    client.query(`select count(*)::int as count from ${table}`),
  );
  if (rows[0].count !== documents) throw new Error(`${table} has ${rows[0].count} of ${documents} documents`);
}

interface Round {
  readonly report: LoadReport;
  /** Events per second from the first byte sent to the last row. */
  readonly applied: number;
}
type Rounds = Record<Level, Round[]>;

/** Measures signed events over HTTP. Both engines apply events to rows, each in its own Postgres database. */
async function measureEvents(bench: Bench, folder: string): Promise<Figures> {
  const { events512, events64, warmUpEvents, rounds } = bench.size;
  const generator = startGenerator(bench);
  const pipeline = await startPipeline(bench);
  const stripe = await startStripeSync(bench, folder);
  const ours: Rounds = { 512: [], 64: [] };
  const theirs: Rounds = { 512: [], 64: [] };
  for (const level of levels) {
    await stripe.send(warmUpEvents, level);
    await sendOurs(generator, pipeline, warmUpEvents, level);
  }
  for (let round = 1; round <= rounds; round++) {
    for (const level of levels) {
      const events = level === 512 ? events512 : events64;
      theirs[level].push(await stripe.send(events, level));
      ours[level].push(await sendOurs(generator, pipeline, events, level));
      bench.say(
        `round ${round} of ${rounds}, ${level} in flight: ${rateOf(theirs[level].slice(-1))} events/s by stripe-sync-engine, ${rateOf(ours[level].slice(-1))} by metersync`,
      );
    }
  }
  return {
    acknowledged512TimesStripeSync: timesOf(ours[512], theirs[512]),
    acknowledged64TimesStripeSync: timesOf(ours[64], theirs[64]),
    appliedTimesStripeSync: median(
      ours[512].map(({ applied }, round) => applied / (theirs[512][round]?.applied ?? Number.NaN)),
    ),
    ...eventFigures('', ours),
    ...eventFigures('stripeSync', theirs),
    appliedPerSecond: median(ours[512].map(({ applied }) => applied)),
  };
}

const reportsOf = (rounds: readonly Round[]): LoadReport[] => rounds.map(({ report }) => report);
const rateOf = (rounds: readonly Round[]): string => perSecond(reportsOf(rounds)).toFixed(0);

/** Compares adjacent rounds, because what disturbed one of them mostly disturbed the other, too. */
const timesOf = (ours: readonly Round[], theirs: readonly Round[]): number =>
  median(
    ours.map(
      ({ report }, round) => perSecond([report]) / perSecond(reportsOf(theirs.slice(round, round + 1))),
    ),
  );

function eventFigures(engine: '' | 'stripeSync', rounds: Rounds): Figures {
  const figures = levels.flatMap((level) => [
    [`acknowledged${level}PerSecond`, perSecond(reportsOf(rounds[level]))] as const,
    [
      `acknowledged${level}P99Ms`,
      percentile(
        reportsOf(rounds[level]).flatMap(({ latencies }) => latencies),
        99,
      ),
    ] as const,
  ]);
  const named = figures.map(
    ([name, figure]) =>
      [engine === '' ? name : `${engine}${name[0]?.toUpperCase()}${name.slice(1)}`, figure] as const,
  );
  return Object.fromEntries(named);
}

async function sendOurs(
  generator: Generator,
  pipeline: Pipeline,
  events: number,
  level: Level,
): Promise<Round> {
  const report = await generator.send(pipeline, { count: events }, level);
  const endedAt = await withClient(pipeline.databaseUrl, (client) =>
    untilReceived(client, report.beganAt, events),
  );
  return { report, applied: (events * 1000) / (endedAt - report.beganAt) };
}

/** Starts stripe-sync-engine and a sender of Stripe's events. The engine answers when the event is a row. */
async function startStripeSync(bench: Bench, folder: string) {
  const databaseUrl = bench.stack.asSuperuser(await bench.stack.database('stripe'));
  const secret = newSecret();
  const engine = bench.child<StripeCalls>('peers/stripe.ts');
  const port = await engine.call('start', { folder, databaseUrl, secret });
  const load = bench.child<StripeCalls>('peers/stripe.ts');
  return {
    send: async (count: number, inFlight: Level): Promise<Round> => {
      await load.call('prepare', { secret, count });
      const report = await load.call('send', { port, inFlight });
      return { report, applied: perSecond([report]) };
    },
  };
}

/** Versions of the measured peers, and of what each needs. */
const versions = {
  dlt: '1.31.0',
  stripeSyncEngine: '0.48.5',
  stripe: '23.1.0',
} as const;

/** The folder of all peers, next to the embedded stack and apart from the project's own packages. */
const peersDir = resolve(import.meta.dirname, '../../.metersync/peers');

const run = promisify(execFile);
/** Time-out of a first fetch over a slow line. */
const installWithinMs = 600_000;

/** Installs dlt in its own virtual environment, if needed. Returns its Python or throws an Error. */
async function installDlt(say: Bench['say']): Promise<string> {
  const home = join(peersDir, `dlt-${versions.dlt}`);
  const python = join(home, process.platform === 'win32' ? 'Scripts/python.exe' : 'bin/python');
  await filled(home, async () => {
    await explain('the bench of peers needs python3', () => run('python3', ['--version']));
    say(`dlt ${versions.dlt} is fetched from PyPI`);
    await explain('the bench of peers needs venv and pip of python3', () =>
      run('python3', ['-m', 'venv', home], { timeout: installWithinMs }),
    );
    const wanted = `dlt[postgres]==${versions.dlt}`;
    await explain(`pip could not install ${wanted}`, () =>
      run(python, ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', wanted], {
        timeout: installWithinMs,
      }),
    );
  });
  return python;
}

/** Installs stripe-sync-engine in its own folder, if needed. Returns the folder or throws an Error. */
async function installStripeSync(say: Bench['say']): Promise<string> {
  const home = join(peersDir, `stripe-sync-engine-${versions.stripeSyncEngine}`);
  await filled(home, async () => {
    say(`stripe-sync-engine ${versions.stripeSyncEngine} is fetched from npm`);
    const dependencies = {
      '@supabase/stripe-sync-engine': versions.stripeSyncEngine,
      stripe: versions.stripe,
    };
    await writeFile(join(home, 'package.json'), JSON.stringify({ private: true, dependencies }));
    const args = ['install', '--no-audit', '--no-fund', '--ignore-scripts'];
    await explain(`npm could not install ${Object.keys(dependencies).join(' and ')}`, () =>
      run('npm', args, { cwd: home, timeout: installWithinMs, shell: process.platform === 'win32' }),
    );
  });
  return home;
}

/** Fills a folder by `install`. An interrupted install starts again. */
async function filled(home: string, install: () => Promise<void>): Promise<void> {
  const complete = join(home, '.complete');
  const isComplete = await access(complete).then(
    () => true,
    () => false,
  );
  if (isComplete) return;
  await rm(home, { recursive: true, force: true });
  await mkdir(home, { recursive: true });
  await install();
  await writeFile(complete, '');
}

/** Puts the purpose of the work before the error, which has the end of the program's output. */
async function explain(what: string, work: () => Promise<unknown>): Promise<void> {
  try {
    await work();
  } catch (error) {
    const { code, stderr, message } = error as { code?: unknown; stderr?: string; message: string };
    const said = code === 'ENOENT' ? 'there is no such program' : stderr?.trim().slice(-600) || message;
    throw new Error(`${what}: ${said}`, { cause: error });
  }
}
