import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';

export interface Certificate {
  /** Path of the certificate. A certificate without an issuer is its own CA. */
  readonly file: string;
  readonly keyFile: string;
  readonly cert: string;
  readonly key: string;
}

/** Makes a certificate for names such as `DNS:localhost,IP:127.0.0.1`, signed by the issuer or itself. */
export async function makeCertificate(
  folder: string,
  name: string,
  names: string,
  issuer?: Certificate,
  days = 2,
): Promise<Certificate> {
  const [file, keyFile] = [join(folder, `${name}.pem`), join(folder, `${name}.key`)];
  await promisify(execFile)('openssl', [
    'req',
    '-x509',
    '-newkey',
    'rsa:2048',
    '-nodes',
    '-days',
    String(days),
    '-keyout',
    keyFile,
    '-out',
    file,
    '-subj',
    `/CN=${name}`,
    '-addext',
    `subjectAltName=${names}`,
    ...(issuer === undefined
      ? []
      : ['-CA', issuer.file, '-CAkey', issuer.keyFile, '-addext', 'basicConstraints=critical,CA:FALSE']),
  ]);
  const [cert, key] = await Promise.all([readFile(file, 'utf8'), readFile(keyFile, 'utf8')]);
  return { file, keyFile, cert, key };
}
