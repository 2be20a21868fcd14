-- Keys used to follow from the seed, so they were the same on every machine. They have the form of
-- a version 4 UUID. Keys that somebody chose keep their value.
update sandbox.api_keys
set key = 'uds_' || replace(gen_random_uuid()::text, '-', '')
where key ~ '^uds_[0-9a-f]{12}4[0-9a-f]{3}[89ab][0-9a-f]{15}$';
