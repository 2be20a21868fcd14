CREATE TABLE "metersync"."also_listed" (
	"resource" text NOT NULL,
	"record_id" text NOT NULL,
	"company_id" uuid NOT NULL,
	CONSTRAINT "also_listed_resource_record_id_company_id_pk" PRIMARY KEY("resource","record_id","company_id")
);
--> statement-breakpoint
CREATE INDEX "also_listed_company" ON "metersync"."also_listed" USING btree ("company_id","resource");
--> statement-breakpoint
COMMENT ON TABLE metersync.also_listed IS 'Records that the listing of a company shows though another company is their owner. They live as long as any listing shows them.';
COMMENT ON COLUMN metersync.also_listed.resource IS 'Kind of the record.';
COMMENT ON COLUMN metersync.also_listed.record_id IS 'Id of the record.';
COMMENT ON COLUMN metersync.also_listed.company_id IS 'The company whose listing shows it, and that is not its owner.';
