/**
 * Which fields of the service are secrets, because they let somebody act in a customer's name. A name matches
 * in any case and any style (camelCase, snake_case, kebab-case), with the words anywhere in it.
 * docs/guides/warehouse.md describes the same rule.
 */

/** Separates the words of a name. JSON escapes none of these characters, except as `\u00…`. */
const gap = '[ _.-]?';
const keys = ['api', 'access', 'auth', 'private', 'signing', 'encryption', 'session', 'shared'].join('|');
const codes = [
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
export const wholeNames: string = [
  `(?:(?:http|proxy|x)${gap})?auth(?:orization)?(?:${gap}header)?|(?:basic|http)${gap}auth|bearer(?:${gap}auth)?`,
  `(?:(?:user|login|web|portal|browser|auth)${gap})?session(?:${gap}id)?|jsessionid|phpsessid|jwt`,
].join('|');

/**
 * Words of which every text that names a secret contains one. They are few and long, so that a search is fast:
 * it takes a third of the time of parsing for pages of bills, which contain none. With all words in one
 * expression, it would take half as long again.
 */
const hints = [
  [
    'secret|pass|token|credential|cookie|security|magic|(?:pin|otp|pwd)(?=")',
    `key(?<=(?:${keys})${gap}key)|code(?<=(?:${codes})${gap}code)`,
  ].join('|'),
  `(?:auth(?:orization)?(?:${gap}header)?|bearer|session(?:${gap}id)?|phpsessid|jwt)(?="|['\\\\]{0,2}\\s{0,8}[:=])`,
];

/** The rest of a string that is a value: no separator of name and value is in it or follows it. */
const restOfValue = '[^"\\\\:=]{0,64}"\\s{0,8}[,\\]}]';

const hinted = hints.map((words) => new RegExp(`(?:${words})(?!${restOfValue})`, 'i'));

/** Whether a text may name a secret: true of every text that does. MFA_TOKEN_EXPIRED does not. */
export function mayNameSecret(text: string): boolean {
  return hinted.some((words) => words.test(text));
}

/** Words that make a name secret. */
export const secretWords: string = [
  `secret(?!ar[yi])|token|credential|cookie|pass${gap}(?:w(?:or)?d|phrase|code|key)|magic${gap}link`,
  `security${gap}(?:question|answer)|(?:${keys})${gap}key|(?:${codes})${gap}code`,
].join('|');
const secretWord = new RegExp(secretWords, 'i');
const wholeName = new RegExp(`^(?:${wholeNames})$`, 'i');

/** Words too short to match inside other words: they count only as the last word of a name. */
export const shortWords: ReadonlySet<string> = new Set(['pass', 'pwd', 'pin', 'otp', 'totp']);

/** Last words of names that describe a secret and do not contain it: its state, or when it was set. */
const wordsAboutSecrets = new Set(
  [
    'at on date time timestamp since until age days created updated changed',
    'expires expired expiry expiration status state required enabled valid',
    'type kind version count attempts',
  ].flatMap((words) => words.split(' ')),
);

const wordBorder = /[^A-Za-z0-9]+|(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])/;

/** Whether the value of a field of this name is a secret, unless it is null, true or false. */
export function isSecretName(name: string): boolean {
  if (!mayNameSecret(`${name.replaceAll('"', ' ')}"`)) return false;
  if (wholeName.test(name)) return true;
  const words = name.split(wordBorder).filter((word) => word !== '');
  const last = words.at(-1)?.toLowerCase() ?? '';
  return shortWords.has(last) || (secretWord.test(name) && !wordsAboutSecrets.has(last));
}
