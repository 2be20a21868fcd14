/** The JSON text of an object's members without braces, which rows store and answers join. */
export function toMembers(value: object): string {
  return JSON.stringify(value).slice(1, -1);
}

export function fromMembers<T>(members: string): T {
  return JSON.parse(`{${members}}`) as T;
}
