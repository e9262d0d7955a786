-- Distributes orders, payments and the stored responses of idempotency keys by their users, on a Citus of one node, for
-- experiments. docs/scale.md says what differs, and what it costs.
--
-- Run it once, after `manage.py migrate` and before the first row:
--
--   psql --single-transaction --set ON_ERROR_STOP=1 --file deploy/citus.sql DATABASE

CREATE EXTENSION IF NOT EXISTS citus;

DO $$
DECLARE
    present record;
BEGIN
    IF EXISTS (SELECT 1 FROM pg_dist_node WHERE groupid <> 0) THEN
        RAISE 'Workers would count rows and index words where nobody reads them: docs/scale.md';
    END IF;
    -- Each shard has the triggers of its table, now and in migrations.
    PERFORM set_config('citus.enable_unsafe_triggers', 'on', false);
    EXECUTE format('ALTER DATABASE %I SET citus.enable_unsafe_triggers = on', current_database());
    -- Users stay on the coordinator, where no foreign key of a shard can look them up: the service locks a user's row
    -- before it adds another one. Keys are unique within a shard only, so they need the column that names the shard.
    FOR present IN
        SELECT conrelid::regclass AS of_table, conname FROM pg_constraint
        WHERE contype IN ('f', 'p') AND conrelid IN (
            'orders_order'::regclass, 'payments_payment'::regclass, 'config_idempotencyrecord'::regclass
        )
    LOOP
        EXECUTE format('ALTER TABLE %s DROP CONSTRAINT %I', present.of_table, present.conname);
    END LOOP;
END
$$;

ALTER TABLE orders_order ADD PRIMARY KEY (id, user_id);
ALTER TABLE payments_payment ADD PRIMARY KEY (id, user_id);
ALTER TABLE config_idempotencyrecord ADD PRIMARY KEY (id, user_id);

SELECT create_distributed_table('orders_order', 'user_id');
SELECT create_distributed_table('payments_payment', 'user_id', colocate_with => 'orders_order');
SELECT create_distributed_table('config_idempotencyrecord', 'user_id', colocate_with => 'orders_order');
