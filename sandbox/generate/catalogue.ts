/** Names from which generated data is drawn: invented companies, and real cities with their time zones. */
export interface Utility {
  readonly name: string;
  readonly url: string;
  readonly types: readonly string[];
}

export interface City {
  readonly name: string;
  readonly state: string;
  readonly timeZone: string;
  readonly postcode: string;
  readonly country: string;
}

export const utilities: readonly Utility[] = [
  {
    name: 'Harbor Light & Power',
    url: 'https://www.harborlightpower.example',
    types: ['ELECTRICITY', 'GAS'],
  },
  {
    name: 'Prairie Electric Cooperative',
    url: 'https://www.prairie-electric.example',
    types: ['ELECTRICITY'],
  },
  { name: 'Cascade Energy', url: 'https://my.cascadeenergy.example', types: ['ELECTRICITY', 'GAS'] },
  { name: 'Saguaro Public Service', url: 'https://www.saguaro-ps.example', types: ['ELECTRICITY'] },
  { name: 'Gulf States Gas', url: 'https://www.gulfstatesgas.example', types: ['GAS'] },
  { name: 'Lakeshore Water Department', url: 'https://water.lakeshore.example', types: ['WATER'] },
  { name: 'Old Dominion Electric', url: 'https://www.olddominion-electric.example', types: ['ELECTRICITY'] },
  {
    name: 'Hudson Valley Utilities',
    url: 'https://www.hvutilities.example',
    types: ['ELECTRICITY', 'GAS', 'WATER'],
  },
];

export const cities: readonly City[] = [
  { name: 'Boston', state: 'MA', timeZone: 'America/New_York', postcode: '02110', country: 'US' },
  { name: 'Chicago', state: 'IL', timeZone: 'America/Chicago', postcode: '60606', country: 'US' },
  { name: 'Denver', state: 'CO', timeZone: 'America/Denver', postcode: '80202', country: 'US' },
  { name: 'Phoenix', state: 'AZ', timeZone: 'America/Phoenix', postcode: '85004', country: 'US' },
  { name: 'Portland', state: 'OR', timeZone: 'America/Los_Angeles', postcode: '97204', country: 'US' },
  { name: 'Houston', state: 'TX', timeZone: 'America/Chicago', postcode: '77002', country: 'US' },
  { name: 'Toronto', state: 'ON', timeZone: 'America/Toronto', postcode: 'M5H 2N2', country: 'CA' },
  { name: 'Honolulu', state: 'HI', timeZone: 'Pacific/Honolulu', postcode: '96813', country: 'US' },
];

export const companyFirsts = [
  'Alder',
  'Beacon',
  'Cobalt',
  'Dunmore',
  'Everett',
  'Foxglove',
  'Granite',
  'Halcyon',
];
export const companySeconds = [
  'Foods',
  'Hotels',
  'Logistics',
  'Properties',
  'Retail',
  'Schools',
  'Steel',
  'Labs',
];
export const companyForms = ['Inc.', 'LLC', 'Group', 'Co.', 'Holdings', 'Partners'];
export const streets = [
  'Main St',
  'Water St',
  'Industrial Pkwy',
  'Market St',
  '5th Ave',
  'Mill Rd',
  'Depot Ln',
];
export const siteKinds = ['Warehouse', 'Store', 'Office', 'Plant', 'Campus', 'Depot'];
