import { createHash } from 'node:crypto';

/** Documents of a page. */
const perPage = 100;

/** The pages of a service with documents of some 600 B, as bytes by path, the same for every reader. */
export interface SmallDocuments {
  readonly pages: ReadonlyMap<string, Uint8Array>;
  readonly documents: number;
  readonly bytes: number;
}

export function makeSmallDocuments(companies: number, documentsOfCompany: number): SmallDocuments {
  const pages = new Map<string, Uint8Array>();
  const all = Array.from({ length: companies }, (_, company) => companyOf(company));
  pages.set('/v2.2/company?page=1', Buffer.from(JSON.stringify(all)));
  let bytes = 0;
  const totalPages = Math.ceil(documentsOfCompany / perPage);
  for (const [at, company] of all.entries()) {
    for (let page = 1; page <= totalPages; page++) {
      const from = (page - 1) * perPage;
      const body = Buffer.from(
        JSON.stringify({
          totalDocuments: documentsOfCompany,
          perPage,
          totalPages,
          currentPage: page,
          hasNext: page < totalPages,
          hasPrevious: page > 1,
          documents: Array.from({ length: Math.min(perPage, documentsOfCompany - from) }, (_, n) =>
            documentOf(company, at * documentsOfCompany + from + n),
          ),
        }),
      );
      pages.set(`/v2.2/document/company/${company.id}?page=${page}`, body);
      bytes += body.length;
    }
  }
  return { pages, documents: companies * documentsOfCompany, bytes };
}

/** Creates an id that depends only on the name. */
function idOf(name: string): string {
  const hex = createHash('md5').update(name).digest('hex');
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}

const companyOf = (number: number) => ({
  id: idOf(`company ${number}`),
  externalId: `C-${number}`,
  name: `Company ${number}`,
  publicId: idOf(`public ${number}`),
  sites: [{ id: idOf(`site ${number}`), name: 'Plant' }],
});

function documentOf({ sites: [site], ...company }: ReturnType<typeof companyOf>, number: number) {
  const at = (seconds: number) =>
    `${new Date(Date.UTC(2026, 0, 1) + (number + seconds) * 1000).toISOString().slice(0, -1)}042`;
  return {
    id: idOf(`document ${number}`),
    company,
    site,
    created: at(0),
    updated: at(30),
    accountNumber: `${1e9 + number}`,
    serviceType: 'ELECTRICITY',
    startDate: '2026-01-01',
    endDate: '2026-01-31',
    totalCharges: `${(number % 90_000) / 100}`,
    chargesUnits: 'USD',
    lineItems: [
      { description: 'Energy', quantity: number % 1_000, quantityUnits: 'kWh', totalCharge: '71.25' },
      { description: 'Delivery', totalCharge: '12.80' },
    ],
  };
}
