/** Characters of an answer that an error quotes: enough to distinguish a login page from a changed shape. */
const quotedCharactersMax = 200;
/** Characters of an answer that are searched for the key. */
const searchedCharactersMax = 4 * 1024;
/** So many characters of the key in a row count as the key. */
const runMin = 8;
/** How many times an echo may be encoded: JSON in JSON, a URL in a URL. */
const encodingsMax = 3;

/** A decoded character, and the part of the text that encodes it. */
interface Unit {
  readonly char: string;
  readonly from: number;
  readonly to: number;
}

/**
 * Makes the function that quotes the start of an answer in an error, on one line. A service may echo the key,
 * or a part of it, in any case, escaped for JSON, a URL or HTML, in base64 or in hex: no 8 characters of it
 * in a row are quoted. The key is removed before the quote is cut, so that no cut leaves a part of it.
 */
export function createQuote(apiKey: string): (text: string) => string {
  const spellings = spellingsOf(apiKey);
  return (text) => {
    const line = withoutKey(text.slice(0, searchedCharactersMax), spellings).replace(/\s+/g, ' ').trim();
    if (line === '') return 'an empty body';
    const cut = line.length > quotedCharactersMax ? `${line.slice(0, quotedCharactersMax)}…` : line;
    // Control characters are escaped. An answer that is JSON keeps its quotation marks: it has escapes of its own.
    return `"${JSON.stringify(cut)
      .slice(1, -1)
      .replace(/\\(["\\])/g, '$1')}"`;
  };
}

/** Every run of characters that counts as the key, all of one length. */
interface Spellings {
  readonly length: number;
  readonly runs: ReadonlySet<string>;
}

/**
 * Spells the key as it is, in hex and in base64; also with its own escapes decoded, as it may contain some.
 */
function spellingsOf(apiKey: string): Spellings {
  const length = Math.max(Math.min(runMin, apiKey.length), 1);
  const bytes = Buffer.from(apiKey, 'latin1');
  const spelled = [bytes.toString('hex'), ...base64Of(bytes)];
  for (const reading of readingsOf(unitsOf(apiKey))) spelled.push(textOf(reading));
  return { length, runs: new Set(spelled.flatMap((spelling) => runsOf(lower(spelling), length))) };
}

/**
 * Encodes the key in base64, at each offset in three bytes and in both alphabets, without characters shared
 * with neighbours.
 */
function base64Of(key: Buffer): string[] {
  return [0, 1, 2].flatMap((before) => {
    const text = Buffer.concat([Buffer.alloc(before), key])
      .toString('base64')
      .replace(/=+$/, '');
    const own = text.slice(Math.ceil((before * 8) / 6), Math.floor(((before + key.length) * 8) / 6));
    return [own, own.replaceAll('+', '-').replaceAll('/', '_')];
  });
}

const runsOf = (text: string, length: number): string[] =>
  Array.from({ length: Math.max(text.length - length + 1, 0) }, (_, at) => text.slice(at, at + length));

function withoutKey(text: string, { length, runs }: Spellings): string {
  const hidden = new Uint8Array(text.length);
  for (const units of readingsOf(unitsOf(text))) {
    const read = lower(textOf(units));
    for (let at = 0; at + length <= read.length; at += 1) {
      if (!runs.has(read.slice(at, at + length))) continue;
      hidden.fill(1, units[at]?.from, units[at + length - 1]?.to);
    }
  }
  let redacted = '';
  for (let at = 0; at < text.length; at += 1) {
    if (hidden[at] === 0) redacted += text[at];
    else if (hidden[at - 1] !== 1) redacted += '[API key]';
  }
  return redacted;
}

const textOf = (units: readonly Unit[]): string => units.map(({ char }) => char).join('');

/** Lowers ASCII letters alone: others may become longer. */
const lower = (text: string): string => text.replace(/[A-Z]+/g, (letters) => letters.toLowerCase());

const unitsOf = (text: string): Unit[] =>
  Array.from({ length: text.length }, (_, at) => ({ char: text[at] as string, from: at, to: at + 1 }));

/** Patterns of escaped ASCII characters, one for each kind, and how to decode a match. */
const escapes: readonly (readonly [pattern: RegExp, charOf: (match: RegExpExecArray) => string])[] = [
  [/\\u00([0-9a-f]{2})|\\x([0-9a-f]{2})/giy, ([, unicode, hex]) => charOfCode(unicode ?? hex, 16)],
  [/\\(["'\\/])/gy, ([, char]) => char as string],
  [/%([0-9a-f]{2})/giy, ([, hex]) => charOfCode(hex, 16)],
  [
    /&#x0*([0-9a-f]{2});?|&#0*(\d{2,3});?|&(amp|lt|gt|quot|apos);/giy,
    ([, hex, decimal, name]) =>
      name === undefined ? charOfCode(hex ?? decimal, hex === undefined ? 10 : 16) : charOfName(name),
  ],
];
const named: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" };
const charOfName = (name: string): string => named[name.toLowerCase()] as string;
const charOfCode = (digits: string | undefined, radix: number): string =>
  String.fromCharCode(Number.parseInt(digits ?? '', radix));

/**
 * Yields the text as it is, and with its escapes decoded, one kind after another in every order. An escape of
 * one kind may contain the key's own characters (`%0` before a key that begins with `0`).
 */
function* readingsOf(units: readonly Unit[], decodings = 0): Generator<readonly Unit[]> {
  yield units;
  if (decodings === encodingsMax) return;
  const text = textOf(units);
  for (const [pattern, charOf] of escapes) {
    const read = decoded(units, text, pattern, charOf);
    if (read.length < units.length) yield* readingsOf(read, decodings + 1);
  }
}

/** Decodes the escapes of one kind once. */
function decoded(
  units: readonly Unit[],
  text: string,
  pattern: RegExp,
  charOf: (match: RegExpExecArray) => string,
): Unit[] {
  const read: Unit[] = [];
  for (let at = 0; at < text.length; ) {
    pattern.lastIndex = at;
    const found = pattern.exec(text);
    const length = found?.[0].length ?? 1;
    const first = units[at] as Unit;
    const last = units[at + length - 1] as Unit;
    read.push({ char: found === null ? first.char : charOf(found), from: first.from, to: last.to });
    at += length;
  }
  return read;
}
