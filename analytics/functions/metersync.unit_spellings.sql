-- Returns the units of ops.unit_factors by the spellings of their names: for each
-- metersync.unit_key an object, whose keys are commodities, or empty for all. Views ask for it only
-- where ops.unit_factors lacks a unit in exactly this spelling, and then once for each statement.
-- Factors are in ops.unit_factors, and only common spellings of its names are listed here. If
-- several names have one key, a name that was added to ops.unit_factors comes first. Names that
-- mean several things are left out: ton (short ton, tonne or ton hour), MBtu (thousand or million
-- Btu) and Mgal without a country. It runs with its owner's rights, because some readers of views
-- may not read ops. As a function of PL/pgSQL it is planned once for each session.
create or replace function metersync.unit_spellings () returns jsonb
language plpgsql stable parallel safe security definer
set search_path = pg_catalog, pg_temp as $$
begin
  return (
  with
    spellings (units, names) as (
      values
        ('kWh', array['kW-h', 'kWhs', 'kWhr', 'kWhrs', 'kilowatt hour', 'kilowatt hours',
          'kilowatt-hour', 'kilowatt-hours']),
        ('MWh', array['MW-h', 'MWhs', 'MWhr', 'megawatt hour', 'megawatt hours', 'megawatt-hour',
          'megawatt-hours']),
        ('GWh', array['gigawatt hours', 'gigawatt-hours']),
        ('Wh', array['watt hour', 'watt hours', 'watt-hour', 'watt-hours']),
        ('KW', array['kilowatt', 'kilowatts', 'kWs']),
        ('MW', array['megawatt', 'megawatts']),
        ('kVA', array['kilovolt-amperes']),
        ('kVAR', array['kilovars']),
        ('thm (US)', array['thm', 'thms', 'therm', 'therms', 'therm (US)', 'therms (US)']),
        ('thm (EC)', array['therm (EC)', 'therms (EC)']),
        ('thm (UK)', array['therm (UK)', 'therms (UK)']),
        ('Dth (US)', array['Dth', 'Dths', 'Dtherm', 'dekatherm', 'dekatherms', 'decatherm',
          'decatherms']),
        ('MMBtu', array['MMBtus', 'million Btu']),
        ('Btu', array['Btus']),
        ('kCal', array['kilocalorie', 'kilocalories']),
        ('GJ', array['gigajoule', 'gigajoules']),
        ('MJ', array['megajoule', 'megajoules']),
        ('ton hours', array['ton hour', 'ton-hour', 'ton-hours', 'ton hrs', 'TonHr']),
        ('cubic m', array['m3', 'm^3', 'm³', 'cu m', 'cu. m', 'cu. m.', 'cbm', 'cubic meter',
          'cubic meters', 'cubic metre', 'cubic metres']),
        ('cubic ft', array['ft3', 'ft^3', 'ft³', 'cu ft', 'cu. ft.', 'cu. ft', 'cuft', 'cubic foot',
          'cubic feet']),
        ('cubic yd', array['yd3', 'yd^3', 'yd³', 'cu yd', 'cu. yd.', 'cubic yard', 'cubic yards']),
        ('CCF', array['CCFs', '100 CF', '100 cubic feet', 'hundred cubic feet']),
        ('MCF', array['MCFs', '1000 CF', '1000 cubic feet', 'thousand cubic feet']),
        ('L', array['liter', 'liters', 'litre', 'litres']),
        ('kL', array['kiloliter', 'kiloliters', 'kilolitre', 'kilolitres']),
        ('gal (US)', array['gal', 'gals', 'gallon', 'gallons', 'US gallon', 'US gallons',
          'gallons (US)']),
        ('100 gal (US)', array['100 gal', '100 gallons', 'hundred gallons']),
        ('kgal (US)', array['kgal', 'kgals', 'TGal', '1000 gal', '1000 gallons',
          'thousand gallons']),
        ('gal (UK)', array['imperial gallon', 'imperial gallons', 'gallons (UK)']),
        ('kg', array['kgs', 'kilogram', 'kilograms']),
        ('lb', array['lbs', 'pound', 'pounds']),
        ('mlb', array['mlbs', 'klb', 'klbs', 'thousand pounds']),
        ('tonne', array['tonnes', 'metric tons'])
    ),
    named as (
      select
        units as name,
        false as is_spelling,
        f.*
      from
        ops.unit_factors f
      union all
      select
        name,
        true,
        f.*
      from
        spellings s
        cross join unnest(s.names) as name
        join ops.unit_factors f on f.units = s.units
    ),
    chosen as (
      select distinct
        on (metersync.unit_key (name), datasource_type) metersync.unit_key (name) as key,
        *
      from
        named
      order by
        metersync.unit_key (name),
        datasource_type,
        is_spelling,
        source = 'definition',
        name collate "C"
    ),
    units_of_keys as (
      select
        key,
        jsonb_object_agg(
          datasource_type,
          jsonb_build_object(
            'units', units,
            'dimension', dimension,
            'standard_units', standard_units,
            'factor', factor
          )
        ) as units
      from chosen
      group by key
    )
  select jsonb_object_agg(key, units)
  from units_of_keys
  );
end
$$;
