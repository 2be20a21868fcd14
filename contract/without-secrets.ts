import { cutMembers } from './json-members.ts';
import { isSecretName, secretHint, secretWords, shortWords } from './secret-names.ts';

/** JSON may write any letter of a name as an escape. */
const escapedAscii = '\\u00';

/** Values that open nothing. */
const harmless = /(?:true|false|null)(?!\w)/y;

/**
 * In what is no JSON: a name, what separates it from its value, and the value. Every repetition has a bound, or ends a
 * match, so that no text makes it try one place twice. A list or an object goes with all that follows.
 */
const loosely = new RegExp(
  [
    `((?:${secretWords}|(?<![A-Za-z])(?:${[...shortWords].join('|')}))[\\w.-]{0,64})`,
    `((?:\\\\?["'])?\\s{0,8}(?::|=>?)\\s{0,8})`,
    `(?!(?:true|false|null)\\b)`,
    `(?:\\\\"[^"]*"?|"[^"\\\\]*(?:\\\\[^][^"\\\\]*)*"?|'[^']*'?|[[{][^]*|(?:(?:bearer|basic|token)\\s{1,8})?[^\\s,;&"'<>(){}[\\]]+)`,
  ].join(''),
  'gi',
);

/**
 * A text of the service without its secrets: of JSON each member with a secret's name goes, at any depth, with all that it
 * holds, unless it is null, true or false; every other byte stays as it was. Of what is no JSON the value after such a name
 * goes, as far as it can be told. It is applied once where a text comes in, so that nothing after that has a secret to lose.
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

function hideValue(whole: string, name: string, separator: string): string {
  return isSecretName(name) ? `${name}${separator}…` : whole;
}
