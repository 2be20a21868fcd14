import type { Pool } from 'pg';

export interface ListedAttempt {
  readonly number: number;
  readonly at: string;
  readonly status: number | null;
  readonly durationMs: number;
  readonly requestHeaders: Readonly<Record<string, string>>;
  readonly responseHeaders: Readonly<Record<string, unknown>> | null;
  readonly responseBody: string | null;
  readonly error: string | null;
  /** A second copy that a disturbance sent. */
  readonly duplicate: boolean;
}

/** The attempts of one delivery, in their order. */
export async function readAttempts(pool: Pool, deliveryId: string): Promise<ListedAttempt[]> {
  const { rows } = await pool.query<ListedAttempt>(
    `select number, to_char(at, 'YYYY-MM-DD"T"HH24:MI:SS.US') as at, status, duration_ms as "durationMs",
      request_headers::json as "requestHeaders", response_headers::json as "responseHeaders",
      response_body as "responseBody", error, duplicate
      from sandbox.attempts where delivery_id = $1 order by at, number`,
    [deliveryId],
  );
  return rows;
}
