import type { Pool } from 'pg';

/** Reads a setting that was changed at run time and survives a restart, stored as JSON by name. */
export async function readSetting<T>(pool: Pool, name: string): Promise<T | undefined> {
  const { rows } = await pool.query<{ value: string }>('select value from sandbox.settings where name = $1', [
    name,
  ]);
  return rows[0] === undefined ? undefined : (JSON.parse(rows[0].value) as T);
}

export async function writeSetting(pool: Pool, name: string, value: unknown): Promise<void> {
  await pool.query(
    `insert into sandbox.settings (name, value) values ($1, $2)
      on conflict (name) do update set value = excluded.value`,
    [name, JSON.stringify(value)],
  );
}
