#!/bin/bash
# First start of the database server: a role and a database for the runtime and for the gateway. The content-store's are
# made by `content-store provision`, since its two roles need particular rights.
set -euo pipefail
make_database() { # name password
  psql -v ON_ERROR_STOP=1 -U "$POSTGRES_USER" -d postgres -v name="$1" -v password="$2" <<'SQL'
CREATE ROLE :"name" LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE PASSWORD :'password';
CREATE DATABASE :"name" OWNER :"name" TEMPLATE template0 ENCODING 'UTF8' LC_COLLATE 'C' LC_CTYPE 'C';
REVOKE ALL ON DATABASE :"name" FROM PUBLIC;
SQL
}
make_database agent_runtime "$AGENT_RUNTIME_PASSWORD"
make_database chat_gateway "$CHAT_GATEWAY_PASSWORD"
