/** A stream of random numbers. The same keys give the same stream on every machine. */
export interface Random {
  /** 0 ≤ n < 2³² */
  word(): number;
  /** min ≤ n ≤ max */
  int(min: number, max: number): number;
  chance(probability: number): boolean;
  pick<T>(choices: readonly T[]): T;
  uuid(): string;
  digits(count: number): string;
}

export function createRandom(...keys: readonly (string | number)[]): Random {
  const word = sfc32(...hash(keys.join('\u001f')));
  const int = (min: number, max: number) => min + (word() % (max - min + 1));
  return {
    word,
    int,
    chance: (probability) => word() < probability * 4_294_967_296,
    pick: <T>(choices: readonly T[]): T => {
      const choice = choices[word() % choices.length];
      if (choice === undefined) throw new RangeError('nothing to pick from');
      return choice;
    },
    uuid: () => uuidOf(word(), word(), word(), word()),
    digits: (count) => Array.from({ length: count }, () => word() % 10).join(''),
  };
}

function uuidOf(a: number, b: number, c: number, d: number): string {
  const hex = (value: number) => (value >>> 0).toString(16).padStart(8, '0');
  const second = hex((b & 0xffff0fff) | 0x4000);
  const third = hex((c & 0x3fffffff) | 0x80000000);
  return `${hex(a)}-${second.slice(0, 4)}-${second.slice(4)}-${third.slice(0, 4)}-${third.slice(4)}${hex(d)}`;
}

/** cyrb128: four well-mixed words from a text. */
function hash(text: string): [number, number, number, number] {
  let [a, b, c, d] = [1779033703, 3144134277, 1013904242, 2773480762];
  for (let position = 0; position < text.length; position++) {
    const code = text.charCodeAt(position);
    a = b ^ Math.imul(a ^ code, 597399067);
    b = c ^ Math.imul(b ^ code, 2869860233);
    c = d ^ Math.imul(c ^ code, 951274213);
    d = a ^ Math.imul(d ^ code, 2716044179);
  }
  a = Math.imul(c ^ (a >>> 18), 597399067);
  b = Math.imul(d ^ (b >>> 22), 2869860233);
  c = Math.imul(a ^ (c >>> 17), 951274213);
  d = Math.imul(b ^ (d >>> 19), 2716044179);
  return [(a ^ b ^ c ^ d) >>> 0, (b ^ a) >>> 0, (c ^ a) >>> 0, (d ^ a) >>> 0];
}

/** Chris Doty-Humphrey's small fast counter generator: passes PractRand, four words of state. */
function sfc32(a: number, b: number, c: number, d: number): () => number {
  const next = () => {
    const sum = (((a + b) | 0) + d) | 0;
    d = (d + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = (c << 21) | (c >>> 11);
    c = (c + sum) | 0;
    return sum >>> 0;
  };
  for (let warmUp = 0; warmUp < 12; warmUp++) next();
  return next;
}
