/**
 * Which fields of the service are secrets: what lets somebody act in a customer's name. A name counts in any case and in
 * any style (camelCase, snake_case, kebab-case), wherever in it the words stand. docs/warehouse.md says the same to analysts.
 */

/** What may stand between the words of a name: none of it is ever escaped in JSON, but as `\u00…`. */
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

/** Made of few and long words: pages of bills, which have none, are searched in half the time that it takes to parse them. */
const hints = [
  'secret|pass|token|credential|cookie|security|magic|(?:pin|otp|pwd)(?=")',
  `key(?<=(?:${keys})${gap}key)|code(?<=(?:${codes})${gap}code)`,
].join('|');

/** The rest of a string that is a value: nothing in it separates a name from its value, nor follows it. */
const restOfValue = '[^"\\\\:=]{0,64}"\\s{0,8}[,\\]}]';

/** Found in every text that names a secret, and in few others. Values are passed over, such as the status MFA_TOKEN_EXPIRED. */
export const secretHint: RegExp = new RegExp(`(?:${hints})(?!${restOfValue})`, 'i');

/** Words that make a name a secret's. */
export const secretWords: string = [
  `secret(?!ar[yi])|token|credential|cookie|pass${gap}(?:w(?:or)?d|phrase|code|key)|magic${gap}link`,
  `security${gap}(?:question|answer)|(?:${keys})${gap}key|(?:${codes})${gap}code`,
].join('|');
const secretWord = new RegExp(secretWords, 'i');

/** Words too short to be looked for inside of others: the last of a name, or none of it. */
export const shortWords: ReadonlySet<string> = new Set(['pass', 'pwd', 'pin', 'otp', 'totp']);

/** Last words of names that tell something about a secret: when it was set, what became of it, how many there are. */
const wordsAboutSecrets = new Set([
  ...[
    'at',
    'on',
    'date',
    'time',
    'timestamp',
    'since',
    'until',
    'age',
    'days',
    'created',
    'updated',
    'changed',
  ],
  ...['expires', 'expired', 'expiry', 'expiration', 'status', 'state', 'required', 'enabled', 'valid'],
  ...['type', 'kind', 'version', 'count', 'attempts'],
]);

const wordBorder = /[^A-Za-z0-9]+|(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])/;

/** Whether the value of a field of this name is a secret, unless it is null, true or false. */
export function isSecretName(name: string): boolean {
  if (!secretHint.test(`${name.replaceAll('"', ' ')}"`)) return false;
  const words = name.split(wordBorder).filter((word) => word !== '');
  const last = words.at(-1)?.toLowerCase() ?? '';
  return shortWords.has(last) || (secretWord.test(name) && !wordsAboutSecrets.has(last));
}
