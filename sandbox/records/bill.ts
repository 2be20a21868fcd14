/** The reading of one meter for one bill. Usage is in thousandths of `units`. */
export interface Reading {
  readonly usageId: string;
  readonly meterId: string;
  readonly startDate: string;
  readonly endDate: string;
  readonly usageMilli: number;
  readonly units: string;
  readonly isEstimated: boolean;
  /** Subtracted in sums, because somebody else pays for it. */
  readonly isExcluded?: boolean;
  /** Price of a unit in hundred-thousandths of the currency. */
  readonly deliveryRate: number;
  readonly supplyRate: number;
  readonly demandMilli: number | null;
}

/** The content of a bill, from which a document and its usage rows are made. Money is in cents. */
export interface Bill {
  readonly periodStart: string;
  readonly periodEnd: string;
  readonly billDate: string;
  readonly dueDate: string;
  readonly currency: string;
  readonly invoiceId: string;
  readonly jobId: string;
  readonly sourceType: string;
  readonly previousCents: number;
  readonly paidCents: number;
  readonly fixedCents: number;
  readonly taxPercentMilli: number;
  readonly isFlagged: boolean;
  readonly revisedDocumentId: string | null;
  readonly notes: string;
  readonly readings: readonly Reading[];
}

/** Units of a commodity as bills print them. */
export function unitsOf(datasourceType: string): string {
  if (datasourceType === 'GAS') return 'thm (US)';
  if (datasourceType === 'WATER') return 'kgal (US)';
  return 'kWh';
}
