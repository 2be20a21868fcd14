import { JsonTokens } from './json.ts';
import { isSecretName, mayNameSecret, secretWords, shortWords, wholeNames } from './secret-names.ts';

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
