import { Client, Connection } from '@temporalio/client';
import pg from 'pg';
import { expect, inject, test } from 'vitest';
import { createDatabase } from '../support/database.ts';
import { createNamespace } from '../support/namespace.ts';

test('a test file gets a database of its own, and dropping it ends remaining connections', async () => {
  const database = await createDatabase('own');
  const client = new pg.Client({ connectionString: database.url });
  const disconnected = new Promise((resolve) => client.on('error', resolve));
  await client.connect();
  const { rows } = await client.query('select current_database() as name');
  expect(rows[0].name).toMatch(/^own_/);
  await database.drop();
  await disconnected;
  const again = new pg.Client({ connectionString: database.url });
  await expect(again.connect()).rejects.toThrow(/does not exist/);
});

test('workflows can be started in a namespace as soon as it was created', async () => {
  const namespace = await createNamespace();
  const connection = await Connection.connect({ address: inject('temporalAddress') });
  const client = new Client({ connection, namespace });
  const handle = await client.workflow.start('any', { taskQueue: 'any', workflowId: 'any' });
  expect((await handle.describe()).status.name).toBe('RUNNING');
  await connection.close();
});
