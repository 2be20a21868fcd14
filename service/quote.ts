/** Characters of an answer that an error quotes: enough to tell a login page from a changed shape. */
const quotedCharactersMax = 200;

/**
 * Makes the function that quotes the beginning of an answer in an error, on one line. A service may echo the
 * key it was sent, so the key is taken out first.
 */
export function createQuote(apiKey: string): (text: string) => string {
  return (text) => {
    // Only as much as can be quoted is searched, with room for a key that crosses the cut.
    const beginning = text.slice(0, quotedCharactersMax + apiKey.length).replaceAll(apiKey, '[API key]');
    const line = beginning.replace(/\s+/g, ' ').trim();
    if (line === '') return 'an empty body';
    return JSON.stringify(
      line.length > quotedCharactersMax ? `${line.slice(0, quotedCharactersMax)}…` : line,
    );
  };
}
