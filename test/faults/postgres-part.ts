import { prepareFolder } from '../../embedded/folder.ts';
import {
  type EmbeddedPostgres,
  embeddedPostgres,
  type PostgresRelease,
  postgresAnswers,
  postgresServer,
  preparePostgres,
} from '../../embedded/postgres.ts';
import { until } from '../support/poll.ts';
import { createPart, type Part } from './part.ts';
import { launchServer } from './server-process.ts';

/** A Postgres that can be killed and restarted. */
export interface PostgresPart {
  readonly part: Part;
  readonly users: EmbeddedPostgres;
  readonly port: number;
  /** The data folder, and the account that owns the folder if the test runs as root. */
  readonly data: string;
  readonly account: { readonly uid: number; readonly gid: number } | undefined;
}

/** Creates data in a folder, or uses what is there, and makes its part; by default Postgres 18. */
export async function preparePart(
  dir: string,
  port: number,
  release?: PostgresRelease,
): Promise<PostgresPart> {
  prepareFolder(dir);
  const prepared = await preparePostgres(dir, () => {}, release);
  const { server, address } = postgresServer(prepared, port);
  const answers = () =>
    until('Postgres answers', () => postgresAnswers(address), { timeoutMs: 300_000, everyMs: 50 });
  return {
    part: createPart('postgres', () => launchServer(server, answers)),
    users: embeddedPostgres(address),
    port,
    data: prepared.data,
    account: prepared.account,
  };
}
