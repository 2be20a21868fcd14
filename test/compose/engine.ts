import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

/** The version of Compose from which docker-compose.yml can be read, because of the optional `env_file`. */
const composeAtLeast = [2, 24] as const;

/** Says why there is no engine that can run docker-compose.yml here; undefined if there is one. */
export async function engineMissing(): Promise<string | undefined> {
  const asked = async (...args: string[]) => {
    const { stdout } = await promisify(execFile)('docker', args, { timeout: 30_000 });
    return stdout.trim();
  };
  try {
    await asked('version', '--format', '{{.Server.Version}}');
  } catch (error) {
    const { code, stderr, message } = error as Error & { code?: string | number; stderr?: string };
    return code === 'ENOENT'
      ? 'there is no command docker'
      : `no container engine answers: ${lastLine(stderr || message)}`;
  }
  try {
    const version = await asked('compose', 'version', '--short');
    return isNewEnough(version)
      ? undefined
      : `docker compose has version ${version}, and ${composeAtLeast.join('.')} or newer is needed`;
  } catch {
    return 'docker has no command compose';
  }
}

export function isNewEnough(version: string): boolean {
  const [major = 0, minor = 0] = version.replace(/^v/, '').split('.').map(Number);
  return major > composeAtLeast[0] || (major === composeAtLeast[0] && minor >= composeAtLeast[1]);
}

const lastLine = (text: string): string => text.trim().split('\n').at(-1) ?? '';
