/** The JSON text of an object's members without its braces: what rows store and answers are put together from. */
export function toMembers(value: object): string {
  return JSON.stringify(value).slice(1, -1);
}

export function fromMembers<T>(members: string): T {
  return JSON.parse(`{${members}}`) as T;
}
