#!/bin/bash
# The migration job: brings the three databases up to date, then makes the administrator on the first start.
set -euo pipefail
content-store provision
content-store migrate
agent-runtime migrate
chat-gateway migrate
CONTENT_STORE_USER_PASSWORD=$REMIT_ADMIN_PASSWORD content-store user create "$REMIT_ADMIN_NAME" --admin --if-missing
