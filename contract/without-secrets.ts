import { JsonTokens } from './json.ts';

/**
 * Which fields of the service are secrets, because they let somebody act in a customer's name. A name matches
 * in any case and any style (camelCase, snake_case, kebab-case), with the words anywhere in it.
 * docs/security.md describes the same rule.
 */

/** Separates the words of a name. JSON escapes none of these characters, except as `\u00…`. */
const gap = '[ _.-]?';
const keys = ['api', 'access', 'auth', 'login', 'private', 'signing', 'encryption', 'session', 'shared'].join(
  '|',
);
const codes = [
  'access',
  'mfa',
  '2fa',
  'sms',
  'otp',
  'login',
  'security',
  'verification',
  'recovery',
  'backup',
  'time',
].join('|');

/**
 * Names that are secret as a whole: as a part of a longer name each may be ordinary, as in
 * `authorizationStatus`, `costBearer` and `chargingSession`.
 */
const wholeNames: string = [
  `(?:(?:http|proxy|x)${gap})?auth(?:orization|entication)?(?:${gap}header)?`,
  `(?:basic|http)${gap}auth|bearer(?:${gap}auth)?|otpauth(?:${gap}ur[il])?`,
  `(?:(?:user|login|web|portal|browser|auth)${gap})?session(?:${gap}id)?|jsessionid|phpsessid|jwt`,
].join('|');

/** What may surround a name without changing its meaning, as in `"Authorization: "`. JSON may escape it. */
const around = '(?:\\\\(?:[bfnrt]|u[0-9a-f]{4})|[^A-Za-z0-9"]){0,64}';

/**
 * Words of which every text that names a secret contains one. They are few and long, so that a search is fast:
 * it takes a third of the time of parsing for pages of bills, which contain none. With all words in one
 * expression, it would take half as long again.
 */
const hints = [
  [
    `secret|pass|token|cred(?:ential|s)|cookie|security|magic|(?:pin|otp|pwd?)(?:${gap}hash)?(?=${around}")`,
    `key(?<=(?:${keys})${gap}key)|code(?<=(?:${codes})${gap}code)`,
  ].join('|'),
  [
    `(?:auth(?:orization|entication)?(?:${gap}(?:header|ur[il]))?|bearer|session(?:${gap}id)?|phpsessid|jwt)`,
    `(?=${around}[":=])`,
  ].join(''),
];

/** The rest of a string that is a value: no separator of name and value is in it or follows it. */
const restOfValue = '[^"\\\\:=]{0,64}"\\s{0,8}[,\\]}]';

const hinted = hints.map((words) => new RegExp(`(?:${words})(?!${restOfValue})`, 'i'));

/** Whether a text may name a secret: true of every text that does. MFA_TOKEN_EXPIRED does not. */
export function mayNameSecret(text: string): boolean {
  return hinted.some((words) => words.test(text));
}

/** Words that make a name secret. */
const secretWords: string = [
  `secret(?!ar[yi])|token|credential|cookie|pass${gap}(?:w(?:or)?d|phrase|code|key)|magic${gap}link`,
  `security${gap}(?:question|answer)|(?:${keys})${gap}key|(?:${codes})${gap}code`,
].join('|');
const secretWord = new RegExp(secretWords, 'i');
const wholeName = new RegExp(`^(?:${wholeNames})$`, 'i');

/** Words too short to match inside other words: they count only as the last word of a name. */
const shortWords: ReadonlySet<string> = new Set(['pass', 'pwd', 'pw', 'pin', 'otp', 'totp', 'creds']);

/** Last words of names that describe a secret and do not contain it: its state, or when it was set. */
const wordsAboutSecrets = new Set(
  [
    'at on date time timestamp since until age days created updated changed',
    'expires expired expiry expiration status state required enabled valid',
    'type kind version count attempts',
  ].flatMap((words) => words.split(' ')),
);

const wordBorder = /[^A-Za-z0-9]+|(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])/;

/**
 * Whether the value of a field of this name is a secret, unless it is null, true or false. Blanks and
 * punctuation around the name do not count.
 */
export function isSecretName(name: string): boolean {
  if (!mayNameSecret(`${name.replaceAll('"', ' ')}"`)) return false;
  const words = name.split(wordBorder).filter((word) => word !== '');
  if (wholeName.test(name) || wholeName.test(words.join(' '))) return true;
  const last = words.at(-1)?.toLowerCase() ?? '';
  const hashed = last === 'hash' ? words.at(-2)?.toLowerCase() : undefined;
  return shortWords.has(hashed ?? last) || (secretWord.test(name) && !wordsAboutSecrets.has(last));
}

/** JSON may write any letter of a name as an escape. */
const escapedAscii = '\\u00';

/** Values that cannot be secrets. */
const harmless = /(?:true|false|null)(?!\w)/y;

/**
 * Matches a name, its separator and its value in text that is not JSON. Every repetition is bounded, or ends
 * a match, so that no text makes it backtrack. A list or an object matches to the end of the text.
 */
const loosely = new RegExp(
  [
    `((?:${secretWords}|(?<![A-Za-z])(?:${wholeNames}|${[...shortWords].join('|')}))[\\w.-]{0,64})`,
    `([\\s:]{0,8}(?:\\\\?["'])?\\s{0,8}(?::|=>?)\\s{0,8})`,
    `(?!(?:true|false|null)\\b)`,
    `(?:\\\\"[^"]*"?|"[^"\\\\]*(?:\\\\[^][^"\\\\]*)*"?|'[^']*'?|[[{][^]*|(?:(?:bearer|basic|token)\\s{1,8})?[^\\s,;&"'<>(){}[\\]]+)`,
  ].join(''),
  'gi',
);

/**
 * Removes the secrets from a text of the service. In JSON it cuts each member with a secret's name, at any
 * depth, unless its value is null, true or false. All other bytes are unchanged. In text that is not JSON it
 * hides the value after such a name, as far as that can be recognized. It is applied once, where a text
 * arrives, so no later step has secrets.
 */
export function withoutSecrets(text: string): string {
  if (!mayNameSecret(text) && !text.includes(escapedAscii)) return text;
  const { kept, rest } = cutSecrets(text);
  return kept + rest.replace(loosely, hideValue);
}

/** Cuts secrets out of objects at any depth, with their commas, up to where the text stops being JSON. */
function cutSecrets(text: string): { readonly kept: string; readonly rest: string } {
  const tokens = new JsonTokens(text);
  let kept = '';
  /** The text before this position is in `kept`, or was cut. */
  let done = 0;
  /** Where the members begin that will be cut next; -1 if there are none. */
  let cutFrom = -1;
  /** The depth of the object whose member is being cut; 0 if no member is being cut. */
  let hiddenIn = 0;
  /**
   * Whether the current object keeps a member, so that a comma is needed. An object around it always keeps at
   * least one member: the member that contains the current object.
   */
  let hasKept = false;
  let comma = 0;
  const cutTo = (end: number): void => {
    if (cutFrom === -1) return;
    kept += text.slice(done, cutFrom);
    done = end;
    cutFrom = -1;
  };
  for (let before = 0; tokens.next(); before = tokens.to) {
    const { kind, depth } = tokens;
    if (hiddenIn !== 0) {
      if (depth > hiddenIn || (depth === hiddenIn && kind !== 'comma')) continue;
      hiddenIn = 0;
      if (kind === 'close') cutTo(before);
    }
    if (kind === 'comma') comma = tokens.from;
    else if (kind === 'open') hasKept = false;
    else if (kind === 'close') hasKept = true;
    else if (kind === 'name') {
      const from = hasKept ? comma : tokens.from;
      if (isSecretName(tokens.name) && !isHarmless(text, tokens.to)) {
        hiddenIn = depth;
        if (cutFrom === -1) cutFrom = from;
      } else {
        cutTo(from);
        hasKept = true;
      }
    }
  }
  // If a member is still being cut here, its end is unknown, so everything that follows is cut, too.
  if (cutFrom !== -1) return { kept: kept + text.slice(done, cutFrom), rest: '' };
  return { kept: kept + text.slice(done, tokens.to), rest: tokens.rest };
}

function isHarmless(text: string, valueAt: number): boolean {
  harmless.lastIndex = valueAt;
  return harmless.test(text);
}

function hideValue(match: string, name: string, separator: string): string {
  return isSecretName(name) ? `${name}${separator}…` : match;
}
