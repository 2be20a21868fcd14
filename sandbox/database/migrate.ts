import { readdir, readFile } from 'node:fs/promises';
import type { Client } from 'pg';

/** Brings the database to the newest schema: ordered SQL files, each applied once, all in one transaction. */
export async function migrate(client: Client, folder = new URL('../migrations/', import.meta.url)) {
  const files = (await readdir(folder)).filter((name) => name.endsWith('.sql')).sort();
  await client.query('begin');
  try {
    await client.query('create schema if not exists sandbox');
    await client.query('create table if not exists sandbox.migrations (name text primary key)');
    const done = await client.query<{ name: string }>('select name from sandbox.migrations');
    const applied = new Set(done.rows.map((row) => row.name));
    for (const name of files.filter((file) => !applied.has(file))) {
      await client.query(await readFile(new URL(name, folder), 'utf8'));
      await client.query('insert into sandbox.migrations (name) values ($1)', [name]);
    }
    await client.query('commit');
  } catch (error) {
    await client.query('rollback');
    throw error;
  }
}
