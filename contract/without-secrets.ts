import { cutMembers } from './json-members.ts';
import { isSecretName, secretHint, secretWords, shortWords, wholeNames } from './secret-names.ts';

/** JSON may write any letter of a name as an escape. */
const escapedAscii = '\\u00';

/** Values that can be no secret. */
const harmless = /(?:true|false|null)(?!\w)/y;

/**
 * Matches a name, its separator and its value in text that is not JSON. Every repetition is bounded, or ends
 * a match, so that no text makes it backtrack. A list or an object matches to the end of the text.
 */
const loosely = new RegExp(
  [
    `((?:${secretWords}|(?<![A-Za-z])(?:${wholeNames}|${[...shortWords].join('|')}))[\\w.-]{0,64})`,
    `((?:\\\\?["'])?\\s{0,8}(?::|=>?)\\s{0,8})`,
    `(?!(?:true|false|null)\\b)`,
    `(?:\\\\"[^"]*"?|"[^"\\\\]*(?:\\\\[^][^"\\\\]*)*"?|'[^']*'?|[[{][^]*|(?:(?:bearer|basic|token)\\s{1,8})?[^\\s,;&"'<>(){}[\\]]+)`,
  ].join(''),
  'gi',
);

/**
 * Removes the secrets from a text of the service. In JSON it cuts each member with a secret's name, at any
 * depth, unless its value is null, true or false. All other bytes are unchanged. In text that is not JSON it
 * hides the value after such a name, as far as that can be recognized. It is applied once, where a text
 * arrives: no later step has secrets.
 */
export function withoutSecrets(text: string): string {
  if (!secretHint.test(text) && !text.includes(escapedAscii)) return text;
  const cut = cutMembers(text, (name, valueAt) => isSecretName(name) && !isHarmless(text, valueAt));
  return cut.rest === '' ? cut.text : cut.text + cut.rest.replace(loosely, hideValue);
}

function isHarmless(text: string, valueAt: number): boolean {
  harmless.lastIndex = valueAt;
  return harmless.test(text);
}

function hideValue(match: string, name: string, separator: string): string {
  return isSecretName(name) ? `${name}${separator}…` : match;
}
