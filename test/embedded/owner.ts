/**
 * A program that owns a stack in a data folder, for tests to kill. It prints `ready`. On SIGINT it drains,
 * and prints `drained` if both servers still answer afterwards.
 */
import { Connection } from '@temporalio/client';
import pg from 'pg';
import { startEmbedded } from '../../embedded/start.ts';

const [dir] = process.argv.slice(2);
if (dir === undefined) throw new Error('usage: owner.ts DIR');
const stack = await startEmbedded({ dir, postgres: true, temporal: true });
const awake = setInterval(() => {}, 60_000);

process.on('SIGINT', async () => {
  const client = new pg.Client({ connectionString: stack.postgres?.superuserUrl('postgres') });
  await client.connect();
  await client.query('select 1');
  await client.end();
  const connection = await Connection.connect({ address: stack.temporal?.address ?? '' });
  await connection.close();
  process.stdout.write('drained\n');
  await stack.stop();
  clearInterval(awake);
});
// Ends the program without stopping its servers.
process.on('SIGUSR2', () => process.exit(0));

process.stdout.write('ready\n');
