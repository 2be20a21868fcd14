/** A refusal of the API: its status and the JSON body `{"detail": …}` that says what is wrong. */
export class Problem extends Error {
  readonly statusCode: number;

  constructor(statusCode: number, detail: string) {
    super(detail);
    this.statusCode = statusCode;
  }
}

export const notFound = (what: string): Problem => new Problem(404, `${what} not found.`);
export const badRequest = (detail: string): Problem => new Problem(400, detail);
