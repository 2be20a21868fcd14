import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';

export interface Certificate {
  /** Path of the certificate, which is its own CA. */
  readonly file: string;
  readonly cert: string;
  readonly key: string;
}

/** Makes a self-signed certificate for names such as `DNS:localhost,IP:127.0.0.1`, in files of the folder. */
export async function makeCertificate(folder: string, name: string, names: string): Promise<Certificate> {
  const [file, keyFile] = [join(folder, `${name}.pem`), join(folder, `${name}.key`)];
  await promisify(execFile)('openssl', [
    'req',
    '-x509',
    '-newkey',
    'rsa:2048',
    '-nodes',
    '-days',
    '2',
    '-keyout',
    keyFile,
    '-out',
    file,
    '-subj',
    `/CN=${name}`,
    '-addext',
    `subjectAltName=${names}`,
  ]);
  const [cert, key] = await Promise.all([readFile(file, 'utf8'), readFile(keyFile, 'utf8')]);
  return { file, cert, key };
}
