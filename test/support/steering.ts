/** Lists the characters that steer a terminal or fool its reader. Shares no ranges with the tested code. */
export function steering(text: string): string[] {
  const ranges: readonly (readonly [number, number])[] = [
    ...([
      [0x00, 0x09],
      [0x0b, 0x1f],
      [0x7f, 0x9f],
      [0xad, 0xad],
      [0x061c, 0x061c],
      [0x180e, 0x180e],
    ] as const),
    ...([
      [0x200b, 0x200f],
      [0x2028, 0x202e],
      [0x2060, 0x206f],
      [0xd800, 0xdfff],
      [0xfeff, 0xfeff],
    ] as const),
    ...([
      [0xfff9, 0xfffb],
      [0x3164, 0x3164],
      [0xe0000, 0xe0fff],
    ] as const),
  ];
  return [...text]
    .map((char) => char.codePointAt(0) ?? 0)
    .filter((code) => ranges.some(([from, to]) => code >= from && code <= to))
    .map((code) => code.toString(16));
}
