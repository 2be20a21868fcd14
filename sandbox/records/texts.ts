/** The JSON text of an object's members without braces, which rows store and answers join. */
export function toMembers(value: object): string {
  return JSON.stringify(value).slice(1, -1);
}

export function fromMembers<T>(members: string): T {
  return JSON.parse(`{${members}}`) as T;
}

/** Writes an amount as a decimal string. Amounts are whole numbers of a small unit, never floats. */
export function decimal(value: number, places: number): string {
  if (!Number.isSafeInteger(value)) throw new RangeError(`not a whole number of units: ${value}`);
  const digits = Math.abs(value)
    .toString()
    .padStart(places + 1, '0');
  const whole = digits.slice(0, digits.length - places);
  return `${value < 0 ? '-' : ''}${whole}.${digits.slice(digits.length - places)}`;
}

/** Returns a × b ÷ divisor without its fraction, and without rounding errors in between. */
export function scaled(a: number, b: number, divisor: number): number {
  const product = a * b;
  if (!Number.isSafeInteger(product)) return Number((BigInt(a) * BigInt(b)) / BigInt(divisor));
  return (product - (product % divisor)) / divisor;
}
