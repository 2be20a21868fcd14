/** Servers and proxies on the way may cut longer addresses. */
const addressLengthMax = 2_048;

/** Says what is wrong with an endpoint's address, for the person who typed it; else undefined. */
export function wrongWithAddress(text: string): string | undefined {
  if (text === '') return 'Enter the address that receives your webhooks.';
  if (text.length > addressLengthMax) return `An address can have at most ${addressLengthMax} characters.`;
  if (!/^[a-z][a-z0-9+.-]*:\/\//i.test(text)) return 'Begin the address with https:// or http://.';
  if (!URL.canParse(text))
    return 'This is not a web address. It should look like https://example.com/webhooks.';
  const url = new URL(text);
  if (url.protocol !== 'https:' && url.protocol !== 'http:') {
    return `Webhooks are sent over https:// or http://, not ${url.protocol}//.`;
  }
  if (url.username !== '' || url.password !== '') {
    return 'Leave out the user name and password: every message is signed instead.';
  }
  if (url.hash !== '') return 'Leave out the part from # on: it is never sent to a server.';
  return undefined;
}
