#!/bin/bash
# The migration job: brings the three databases up to date, then makes the administrator on the first start.
set -euo pipefail
content-store provision
content-store migrate
agent-runtime migrate
chat-gateway migrate
content-store user ensure "$REMIT_ADMIN_NAME" --admin --password-variable REMIT_ADMIN_PASSWORD
