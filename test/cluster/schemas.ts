import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { childEnvironment } from '../../embedded/process.ts';

/** Creates the newest schema in a database of Temporal. `schema` is part of its path in the module. */
export async function makeSchema(
  sqlTool: string,
  databaseUrl: string,
  schema: 'temporal' | 'visibility',
): Promise<void> {
  const { hostname, port, username, password, pathname } = new URL(databaseUrl);
  const env = childEnvironment({
    SQL_PLUGIN: 'postgres12',
    SQL_HOST: hostname,
    SQL_PORT: port,
    SQL_USER: decodeURIComponent(username),
    SQL_PASSWORD: decodeURIComponent(password),
    SQL_DATABASE: pathname.slice(1),
  });
  for (const step of [
    ['setup-schema', '--version', '0.0'],
    ['update-schema', '--schema-name', `postgresql/v12/${schema}`],
  ]) {
    const { stdout, stderr } = await promisify(execFile)(sqlTool, step, { env });
    // The tool ends with status 0 even after an error.
    if (/\bERROR\b|Error:/i.test(`${stdout}${stderr}`))
      throw new Error(`${step.join(' ')} of ${schema}: ${stdout}${stderr}`);
  }
}
