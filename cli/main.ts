#!/usr/bin/env node
import { spawn } from 'node:child_process';
import module from 'node:module';
import { constants } from 'node:os';
import { fileURLToPath } from 'node:url';

/**
 * The command needs the Node that is a dependency, and first on PATH under npm and npx. Another Node starts
 * that one here, so this file imports nothing that an older Node could not read.
 */
const nodeMajor = 24;

if (Number.parseInt(process.versions.node, 10) >= nodeMajor) {
  await import('./quick-start.ts');
  const { run } = await import('./run.ts');
  await run(process.argv.slice(2));
  // Connections that a failed start left open must not keep a finished command alive.
  process.exit();
}

const command = spawn(ownNode(), [fileURLToPath(import.meta.url), ...process.argv.slice(2)], {
  stdio: 'inherit',
});
// Ctrl-C in a terminal reaches both processes; SIGTERM reaches only this one, which passes it on.
process.on('SIGINT', () => {});
process.on('SIGTERM', () => command.kill('SIGTERM'));
command.on('error', ({ message }) => giveUp(message));
command.on('exit', (code, signal) => process.exit(code ?? 128 + constants.signals[signal ?? 'SIGTERM']));

/** Finds the program in the package of this platform, an optional dependency in package.json. */
function ownNode(): string {
  const { arch, platform } = process;
  const system = platform === 'win32' ? 'win' : platform;
  const name = `node-${system === 'darwin' && arch === 'arm64' ? 'bin-' : ''}${system}-${arch}`;
  const program = `${name}/bin/node${system === 'win' ? '.exe' : ''}`;
  try {
    return module.createRequire(import.meta.url).resolve(program);
  } catch {
    return giveUp(`its package ${name} is not installed`);
  }
}

function giveUp(why: string): never {
  process.stderr.write(
    `metersync: needs Node ${nodeMajor}; this is Node ${process.versions.node}, and the Node that metersync brings cannot run: ${why}\n`,
  );
  process.exit(1);
}
